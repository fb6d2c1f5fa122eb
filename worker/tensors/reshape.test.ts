import { describe, expect, it } from "vitest";
import { reshaped } from "./reshape.js";

describe("a reshape", () => {
  it.each([
    [[3, 4], [4], [2, 2], true, [3, 2, 2]],
    [[4], [4], [2, 2], false, [2, 2]],
    [[1, 2, 4, 7, 6], [2, 4, -1, 6], [8, -1, 1, 6], true, [1, 8, 7, 1, 6]],
    [[5, 9], [-1, -1], [-1, 1, -1], false, [5, 1, 9]],
    [[2, 0], [-1], [1, -1], true, [2, 1, 0]],
  ])("makes %j, dims %j as %j, rows %j, %j", (shape, from, to, rows, after) => {
    expect(reshaped(shape, { from, to }, rows)).toEqual(after);
  });

  it.each([
    [[3, 5], true],
    [[3, 4, 1], true],
    [[5], false],
  ])("refuses the shape %j, rows %j, in place of [4]", (shape, rows) => {
    expect(() => reshaped(shape, { from: [4], to: [2, 2] }, rows)).toThrow(/to be reshaped/);
  });
});
