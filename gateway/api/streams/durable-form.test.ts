import { describe, expect, it } from "vitest";
import { recordAt, lastRecord } from "../../../test/fixtures/token-records.js";
import { recordOf } from "../../stream/records.js";
import { readQuery } from "../endpoint/parameters.js";
import {
  bodyOf,
  bodyParts,
  catchUpHeaders,
  cursorAfter,
  entityTag,
  isKnown,
  offsetOf,
  pieceEvents,
  readingOf,
  readingQuery,
} from "./durable-form.js";

const ask = (query: string, accept?: string) =>
  readingOf(readQuery(`/s${query}`, readingQuery), accept === undefined ? {} : { accept });
const records = [recordAt(0), recordAt(1), lastRecord(2)].map((json, i) => recordOf(i, json));
const whole = { records, next: 3, isUpToDate: true, isOver: true };

describe("what a reader asks", () => {
  it("begins at the start unless it names an offset", () => {
    const start = { from: 0, live: undefined, cursor: undefined, format: "json" };
    expect([ask(""), ask("?offset=-1"), ask(`?offset=${offsetOf(0)}`)]).toEqual([start, start, start]);
    expect(ask("?offset=now&live=sse&cursor=17")).toEqual({ from: "now", live: "sse", cursor: 17, format: "json" });
    expect(ask("?offset=0000000042&live=long-poll")).toMatchObject({ from: 42, live: "long-poll" });
  });

  it.each([
    "?offset=",
    "?offset=0",
    "?offset=00000000042",
    "?offset=000000004 ",
    "?offset=000000004x",
    "?offset=Now",
    "?offset=-2",
    "?offset=-1&offset=-1",
    "?live=sse",
    "?live=long-poll",
    "?offset=-1&live=true",
    "?offset=-1&live=",
    "?offset=-1&cursor=x",
    "?cursor=-1",
    "?format=xml",
    "?timeout=3",
  ])("is refused as %s", (query) => {
    expect(() => ask(query)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });

  it("is text where the parameter or the header Accept says so", () => {
    const formats = [
      ask("?format=text").format,
      ask("", "text/plain").format,
      ask("", "text/plain;q=0.5, */*;q=0.1").format,
      ask("?format=json", "text/plain").format,
      ask("", "application/json, text/plain, */*").format,
      ask("", "text/plain;q=0").format,
      ask("", "text/event-stream").format,
    ];
    expect(formats).toEqual(["text", "text", "text", "json", "json", "json", "json"]);
    expect([ask("?format=ai-sdk").format, ask("?format=ag-ui", "text/plain").format]).toEqual(["ai-sdk", "ag-ui"]);
  });
});

it("offsets sort as texts, and none looks like a word of the protocol", () => {
  const offsets = [0, 1, 9, 10, 99, 100, 12_345, 999_999_999].map(offsetOf);
  expect([...offsets].sort()).toEqual(offsets);
  expect(offsets).not.toContain("-1");
});

it("a cursor counts intervals of 20 s since 9 October 2024, and is always later than the one before", () => {
  const now = Date.UTC(2024, 9, 9) + 60_000;
  expect(cursorAfter(undefined, now, 0)).toBe("3");
  expect(cursorAfter(2, now, 0.9)).toBe("3");
  expect(cursorAfter(3, now, 0)).toBe("4");
  expect(Number(cursorAfter(900, now, 0.999))).toBeGreaterThan(900);
  expect(Number(cursorAfter(900, now, 0.999))).toBeLessThanOrEqual(900 + 180);
});

describe("a piece", () => {
  it("is the array of its records, byte for byte, or the text of choice 0", () => {
    expect(bodyOf(whole, "json", "r")).toBe(`[${recordAt(0)},${recordAt(1)},${lastRecord(2)}]`);
    expect(bodyOf(whole, "text", "r")).toBe("t0 ét1 é");
    expect(bodyOf({ ...whole, records: [] }, "json", "r")).toBe("[]");
  });

  it("is the same in parts", async () => {
    async function* pages() {
      yield* await Promise.resolve([records.slice(0, 1), [], records.slice(1)]);
    }
    for (const format of ["json", "text", "ai-sdk", "ag-ui"] as const) {
      let parts = "";
      for await (const part of bodyParts(pages(), format, "r")) parts += part;
      expect(parts).toBe(bodyOf(whole, format, "r"));
    }
  });

  it("is one text of two events, the second of which says where to go on", () => {
    const open = { records: records.slice(0, 1), next: 1, isUpToDate: true, isOver: false };
    expect(pieceEvents(open, "json", "r", "7")).toBe(
      `event: data\ndata: [${recordAt(0)}]\n\n` +
        `event: control\ndata: {"streamNextOffset":"0000000001","streamCursor":"7","upToDate":true}\n\n`,
    );
    const silent = { ...whole, records: records.slice(2) };
    expect(pieceEvents(silent, "text", "r", "7")).toBe(
      `event: control\ndata: {"streamNextOffset":"0000000003","upToDate":true,"streamClosed":true}\n\n`,
    );
  });

  it("has no event of records that say nothing in its form", () => {
    const silent = recordOf(1, recordAt(1, { choices: [{ index: 0, text: "", tokens: [1] }] }));
    const piece = { records: [silent], next: 2, isUpToDate: true, isOver: false };
    expect(bodyOf(piece, "ai-sdk", "r")).toBe("[]");
    expect(pieceEvents(piece, "ai-sdk", "r", "7")).not.toContain("event: data");
  });

  it("is not told together with the end as AG-UI's events, whose readers would drop it", () => {
    const last = { ...whole, records: records.slice(2) };
    expect(pieceEvents(last, "ag-ui", "r", "7")).toMatch(/RUN_FINISHED.*"streamCursor":"7","upToDate":true\}\n\n$/s);
    expect(pieceEvents({ ...whole, records: [] }, "ag-ui", "r", "7")).toContain('"streamClosed":true');
    expect(catchUpHeaders("r", "ag-ui", 2, whole)).not.toHaveProperty("stream-closed");
    expect(catchUpHeaders("r", "ag-ui", 3, whole)).toHaveProperty("stream-closed", "true");
    expect(catchUpHeaders("r", "ai-sdk", 2, whole)).toHaveProperty("stream-closed", "true");
  });

  it("keeps the lines of a text in an event", () => {
    const lines = recordOf(0, recordAt(0, { choices: [{ index: 0, text: " a\n\nb\n", tokens: [1] }] }));
    const events = pieceEvents({ records: [lines], next: 1, isUpToDate: false, isOver: false }, "text", "r", "7");
    expect(events).toContain("event: data\ndata:  a\ndata: \ndata: b\ndata: \n\n");
  });

  it("has another tag in another form, from elsewhere, and once it is known to be the last", () => {
    const open = { ...whole, isOver: false };
    const tags = [
      entityTag("r", "json", 0, open),
      entityTag("r", "text", 0, open),
      entityTag("r", "json", 1, open),
      entityTag("r", "json", 0, whole),
    ];
    expect(new Set(tags).size).toBe(4);
    const [tag = ""] = tags;
    expect(isKnown(tag, { "if-none-match": `"x", W/${tag}` })).toBe(true);
    expect(isKnown(tag, { "if-none-match": tags[3] ?? "" })).toBe(false);
    expect(isKnown(tag, {})).toBe(false);
  });
});
