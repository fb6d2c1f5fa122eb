import { describe, expect, it } from "vitest";
import { chunks } from "./chunks.js";

describe("chunks", () => {
  it.each([
    { why: "nothing to write", sizes: [], want: [] },
    { why: "all fit", sizes: [2, 3, 5], want: [[2, 3, 5]] },
    { why: "too many bytes", sizes: [6, 4, 1], want: [[6, 4], [1]] },
    { why: "one that fits in no call", sizes: [1, 50, 1], want: [[1], [50], [1]] },
    { why: "too many items", sizes: [0, 0, 0, 0, 0], want: [[0, 0, 0, 0], [0]] },
  ])("cuts where a call is full: $why", ({ sizes, want }) => {
    expect(chunks(sizes, (size) => size, { bytes: 10, items: 4 })).toEqual(want);
  });
});
