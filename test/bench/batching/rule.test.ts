/** Triton's rule gives the batches that its documentation describes. */
import { describe, expect, it } from "vitest";
import { byRule } from "./rule.js";

const limits = { maxBatchSize: 8, maxDelayMs: 40, preferred: [4] };
const sizesOf = (arrivals: readonly number[], instances = 1) => [...byRule(arrivals, limits, instances, 5).sizes];

describe("byRule", () => {
  it("runs a preferred size at once, and the rest after the delay", () => {
    const { sizes, latencies } = byRule([0, 0, 0, 0, 0, 0], limits, 2, 5);
    expect([...sizes]).toEqual([
      [4, 1],
      [2, 1],
    ]);
    expect(latencies).toEqual([5, 5, 5, 5, 45, 45]);
  });

  it("gathers requests that come one after the other", () => {
    expect(sizesOf([0, 10, 20, 30, 50, 60, 70, 80])).toEqual([[4, 2]]);
    expect(sizesOf([0, 50])).toEqual([[1, 2]]);
  });

  it("runs side by side as many batches as there are instances", () => {
    const eight = Array<number>(8).fill(0);
    expect(byRule(eight, limits, 1, 5).latencies.at(-1)).toBe(10);
    expect(byRule(eight, limits, 2, 5).latencies.at(-1)).toBe(5);
  });
});
