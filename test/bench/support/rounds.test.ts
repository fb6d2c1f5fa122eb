import { describe, expect, it } from "vitest";
import { chosen } from "./rounds.js";

const groups = { steps: ["fleet", "bull"], streams: ["sse", "takeover"], queue: ["idleWorker"] };

describe("chosen", () => {
  it.each([
    ["steps", ["fleet", "bull"], [], []],
    ["streams", [], ["sse", "takeover"], []],
    ["steps,streams", ["fleet", "bull"], ["sse", "takeover"], []],
    ["takeover,bull", ["bull"], ["takeover"], []],
    ["takeover,sse", [], ["sse", "takeover"], []],
    ["queue,sse", [], ["sse"], ["idleWorker"]],
    ["", [], [], []],
  ])("takes %s for what it names", (only, steps, streams, queue) => {
    expect(chosen(only, groups)).toEqual({ steps, streams, queue });
  });

  it("refuses a name that there is not", () => {
    expect(() => chosen("sse,ssd", groups)).toThrow(
      "--only ssd: there is steps, streams, queue, fleet, bull, sse, takeover, idleWorker",
    );
  });
});
