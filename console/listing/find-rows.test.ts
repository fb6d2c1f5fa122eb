import { describe, expect, it } from "vitest";
import { findRows } from "./find-rows.js";

/** A list of `count` numbers, newest first, in pages of `size`; asked notes each `after`. */
function listOf(count: number, size: number) {
  const asked: (string | undefined)[] = [];
  const readPage = (after: string | undefined) => {
    asked.push(after);
    const from = after === undefined ? 0 : Number(after) + 1;
    const data = Array.from({ length: Math.max(0, Math.min(size, count - from)) }, (_, i) => from + i);
    const [first_id, last_id] = [data.at(0), data.at(-1)].map((id) => (id === undefined ? null : String(id)));
    return Promise.resolve({
      object: "list" as const,
      data,
      first_id: first_id ?? null,
      last_id: last_id ?? null,
      has_more: from + size < count,
    });
  };
  return { asked, readPage };
}

describe("findRows", () => {
  it("asks once if the page is full", async () => {
    const { asked, readPage } = listOf(250, 100);
    const found = await findRows(readPage, "99", () => true);
    expect([found.rows.length, found.rows[0], found.hasMore, found.last]).toEqual([100, 100, true, "199"]);
    expect(asked).toEqual(["99"]);
  });

  it("looks through all pages for the rows that fit", async () => {
    const { asked, readPage } = listOf(250, 100);
    const found = await findRows(readPage, undefined, (row) => row === 240);
    expect(found).toEqual({ rows: [240], hasMore: false, last: "249", requests: 3 });
    expect(asked).toEqual([undefined, "99", "199"]);
  });

  it("stops after many requests, and says that there are more", async () => {
    const { asked, readPage } = listOf(10_000, 100);
    const found = await findRows(readPage, undefined, () => false);
    expect([found.rows, found.hasMore, found.last]).toEqual([[], true, "1999"]);
    expect(asked).toHaveLength(20);
  });

  it("stops at a page without a place to continue", async () => {
    const page = { object: "list" as const, data: [], first_id: null, last_id: null, has_more: true };
    const found = await findRows(
      () => Promise.resolve(page),
      undefined,
      () => true,
    );
    expect([found.hasMore, found.requests]).toEqual([false, 1]);
  });
});
