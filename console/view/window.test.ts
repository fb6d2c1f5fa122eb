import { describe, expect, it } from "vitest";
import { windowOf } from "./window.js";

describe("windowOf", () => {
  it("has the visible rows and some around them, wherever the list is scrolled", () => {
    for (let top = 0; top < 360_000; top += 12_345) {
      const { from, to } = windowOf(top, 560, 36, 10_000);
      expect(from * 36).toBeLessThanOrEqual(top);
      expect(to * 36).toBeGreaterThanOrEqual(Math.min(top + 560, 360_000));
      expect(to - from).toBeLessThan(60);
    }
  });

  it("ends with the list", () => {
    expect(windowOf(0, 0, 36, 0)).toEqual({ from: 0, to: 0 });
    expect(windowOf(0, 560, 36, 3)).toEqual({ from: 0, to: 3 });
    expect(windowOf(1e9, 560, 36, 100)).toMatchObject({ to: 100 });
  });
});
