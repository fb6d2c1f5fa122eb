import { describe, expect, it } from "vitest";
import { chosen } from "./chosen.js";

const groups = { steps: ["fleet", "bull"], streams: ["sse", "takeover"] } as const;

describe("chosen", () => {
  it.each([
    ["steps", ["fleet", "bull"], []],
    ["streams", [], ["sse", "takeover"]],
    ["steps,streams", ["fleet", "bull"], ["sse", "takeover"]],
    ["takeover,bull", ["bull"], ["takeover"]],
    ["takeover,sse", [], ["sse", "takeover"]],
    ["", [], []],
  ])("takes %s for what it names", (only, steps, streams) => {
    expect(chosen(only, groups)).toEqual({ steps, streams });
  });

  it("refuses a name that there is not", () => {
    expect(() => chosen("sse,ssd", groups)).toThrow("--only ssd: there is steps, streams, fleet, bull, sse, takeover");
  });
});
