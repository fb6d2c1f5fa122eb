import { describe, expect, it } from "vitest";
import type { KvSlice } from "./kv.js";
import { PrefixCache } from "./prefix-cache.js";

function slice(length: number, row = 0): KvSlice {
  return { block: { rows: row + 1, capacity: length, arrays: [] }, row, from: 0, length };
}

describe("PrefixCache", () => {
  it("finds the longest known beginning, never all of it", () => {
    const cache = new PrefixCache();
    cache.add(Int32Array.of(1, 2, 3), slice(3), 30);
    cache.add(Int32Array.of(1, 2, 4, 5), slice(4, 1), 40);
    expect(cache.find(Int32Array.of(1, 2, 4, 5, 6))).toMatchObject({ row: 1, length: 4 });
    expect(cache.find(Int32Array.of(1, 2, 4, 5))).toMatchObject({ row: 1, length: 3 });
    expect(cache.find(Int32Array.of(1, 2, 3, 9))).toMatchObject({ row: 0, length: 3 });
    expect(cache.find(Int32Array.of(9))).toBeUndefined();
    expect(cache.find(Int32Array.of(1))).toBeUndefined();
  });

  it("keeps only the longer of two that begin alike", () => {
    const cache = new PrefixCache();
    cache.add(Int32Array.of(1, 2), slice(2), 20);
    cache.add(Int32Array.of(1, 2, 3), slice(3), 30);
    cache.add(Int32Array.of(1), slice(1), 10);
    expect(cache.bytes).toBe(30);
  });

  it("lets the least recently used go first", () => {
    const cache = new PrefixCache();
    cache.add(Int32Array.of(1, 1), slice(2), 20);
    cache.add(Int32Array.of(2, 2), slice(2), 20);
    cache.find(Int32Array.of(1, 1, 1));
    cache.shrink(20);
    expect(cache.find(Int32Array.of(1, 1, 1))).toBeDefined();
    expect(cache.find(Int32Array.of(2, 2, 2))).toBeUndefined();
    expect(cache.bytes).toBe(20);
  });

  it("remembers nothing whose positions are not those of its tokens", () => {
    const cache = new PrefixCache();
    for (const length of [1, 3]) expect(() => cache.add(Int32Array.of(1, 2), slice(length), 10)).toThrow(RangeError);
    expect(cache.find(Int32Array.of(1, 2, 3))).toBeUndefined();
  });
});
