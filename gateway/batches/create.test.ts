import { describe, expect, it } from "vitest";
import { readCreate, readWindow } from "./create.js";

const good = { endpoint: "/v1/chat/completions", input_file_id: "file-a", completion_window: "24h" };

describe("what is asked for with a batch", () => {
  it("is read with each endpoint that answers whole", () => {
    expect(readCreate(good)).toEqual({
      endpoint: "/v1/chat/completions",
      inputFile: "file-a",
      window: "24h",
      windowMs: 86_400_000,
      metadata: null,
    });
    for (const path of ["/v1/completions", "/v2/models/m/infer", "/v2/models/m.x/versions/3/generate"]) {
      expect(readCreate({ ...good, endpoint: path }).endpoint).toBe(path);
    }
    expect(readCreate({ ...good, metadata: { a: "b" } }).metadata).toEqual({ a: "b" });
  });

  it.each([
    { endpoint: "/v1/embeddings" },
    { endpoint: "/v2/models/m/generate_stream" },
    { endpoint: "/v2/models/../infer/x" },
    { input_file_id: 7 },
    { completion_window: "24" },
    { completion_window: 24 },
    { metadata: { a: 1 } },
    { metadata: "a" },
    { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`${i}`, "v"])) },
  ])("is refused where it has %o", (change) => {
    expect(() => readCreate({ ...good, ...change })).toThrow(/must be/);
  });

  it("has a window from a second to seven days", () => {
    expect(["1s", "90m", "7d"].map(readWindow)).toEqual([1_000, 5_400_000, 604_800_000]);
    for (const text of ["0h", "8d", "1w", "1.5h", "-1h", ""]) expect(() => readWindow(text)).toThrow(/window/);
  });
});
