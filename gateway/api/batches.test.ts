import { describe, expect, it } from "vitest";
import { orderMembers } from "./batches.js";
import { readMembers } from "./endpoint/members.js";

const good = { endpoint: "/v1/chat/completions", input_file_id: "file-a", completion_window: "24h" };
const read = (given: object) => readMembers(Buffer.from(JSON.stringify(given)), orderMembers);
const windowOf = (text: string) => read({ ...good, completion_window: text }).completion_window.windowMs;

describe("what is asked for with a batch", () => {
  it("is read with each endpoint that answers whole", () => {
    expect(read(good)).toEqual({
      endpoint: "/v1/chat/completions",
      input_file_id: "file-a",
      completion_window: { window: "24h", windowMs: 86_400_000 },
    });
    for (const path of ["/v1/completions", "/v2/models/m/infer", "/v2/models/m.x/versions/3/generate"]) {
      expect(read({ ...good, endpoint: path }).endpoint).toBe(path);
    }
    expect(read({ ...good, metadata: { a: "b" } }).metadata).toEqual({ a: "b" });
    expect(read({ ...good, metadata: null }).metadata).toBe(null);
  });

  it.each([
    { endpoint: "/v1/embeddings" },
    { endpoint: "/v2/models/m/generate_stream" },
    { endpoint: "/v2/models/../infer/x" },
    { endpoint: undefined },
    { input_file_id: 7 },
    { input_file_id: undefined },
    { completion_window: "24" },
    { completion_window: 24 },
    { completion_window: undefined },
    { metadata: { a: 1 } },
    { metadata: "a" },
    { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`${i}`, "v"])) },
  ])("is refused where it has %o", (change) => {
    expect(() => read({ ...good, ...change })).toThrow(/must be/);
  });

  it("names the parameter that is wrong, and the first of several", () => {
    expect(() => read({})).toThrow(expect.objectContaining({ parameter: "input_file_id" }));
  });

  it("has a window from a second to seven days", () => {
    expect(["1s", "90m", "7d"].map(windowOf)).toEqual([1_000, 5_400_000, 604_800_000]);
    for (const text of ["0h", "8d", "1w", "1.5h", "-1h", ""]) expect(() => windowOf(text)).toThrow(/window/);
  });
});
