import { describe, expect, it } from "vitest";
import { MOST_BUCKETS } from "../buckets.js";
import { slotOf } from "../redis/slots.js";
import { bucketTag } from "./bucket-tag.js";

const SLOTS = 16_384;

describe("the tags of buckets", () => {
  it.each([2, 4, 16, 64, 1_024])("lie in equal parts of all slots where there are %i", (buckets) => {
    const parts = Array.from({ length: buckets }, (_, i) => Math.floor((slotOf(bucketTag(i)) * buckets) / SLOTS));
    expect(new Set(parts).size).toBe(buckets);
  });

  it.each([
    [3, 16],
    [3, 24],
    [5, 100],
  ])("put on each of %i nodes its share of %i buckets, give or take two", (nodes, buckets) => {
    const counts = Array<number>(nodes).fill(0);
    for (let i = 0; i < buckets; i++) {
      const node = Math.floor((slotOf(bucketTag(i)) * nodes) / SLOTS);
      counts[node] = (counts[node] ?? 0) + 1;
    }
    for (const count of counts) expect(Math.abs(count - buckets / nodes)).toBeLessThanOrEqual(2);
  });

  it("are all different", () => {
    expect(new Set(Array.from({ length: MOST_BUCKETS }, (_, i) => bucketTag(i))).size).toBe(MOST_BUCKETS);
  });
});
