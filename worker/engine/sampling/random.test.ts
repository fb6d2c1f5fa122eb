import { describe, expect, it } from "vitest";
import { philox4x32, uniform } from "./random.js";

const words = (hex: string): number[] => hex.split(" ").map((word) => Number.parseInt(word, 16));

describe("philox4x32", () => {
  /** The three vectors for philox4x32 10 in Random123's kat_vectors. */
  it.each([
    ["00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"],
    ["ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"],
    ["243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"],
  ])("turns counter %s under key %s into %s", (counter, key, expected) => {
    const block = Uint32Array.from(words(counter));
    const [key0 = 0, key1 = 0] = words(key);
    philox4x32(block, key0, key1);
    expect([...block]).toEqual(words(expected));
  });
});

describe("uniform", () => {
  const seed = 2 ** 53 - 1;

  it("is the same for the same place", () => {
    expect(uniform(seed, 3, 1_000_000)).toBe(uniform(seed, 3, 1_000_000));
  });

  it("has the first two words of the block in its bits, the first on top", () => {
    const bits = (0x66_27_e8_d5 >>> 5) * 2 ** 26 + (0xe1_69_c5_8d >>> 6);
    expect(uniform(0, 0, 0)).toBe(bits / 2 ** 53);
  });

  it("depends on every bit of the seed, on choice, index and draw", () => {
    const numbers = [uniform(0, 0, 0), uniform(0, 0, 1), uniform(0, 1, 0), uniform(0, 0, 0, 1)];
    for (let bit = 0; bit < 53; bit++) numbers.push(uniform(2 ** bit, 0, 0));
    expect(new Set(numbers).size).toBe(4 + 53);
  });

  it.each<[what: string, number: (i: number) => number]>([
    ["indices", (i) => uniform(7, 0, i)],
    ["choices", (i) => uniform(7, i, 0)],
    ["seeds", (i) => uniform(i, 0, 0)],
    ["draws", (i) => uniform(7, 0, 0, i)],
  ])("fills [0, 1) evenly over consecutive %s, each independent of the last", (_what, number) => {
    const count = 20_000;
    const buckets = new Float64Array(100);
    let sum = 0;
    let product = 0;
    let last = 0.5;
    for (let i = 0; i < count; i++) {
      const x = number(i);
      expect(x >= 0 && x < 1).toBe(true);
      buckets[Math.floor(x * 100)] = (buckets[Math.floor(x * 100)] ?? 0) + 1;
      sum += x;
      product += (x - 0.5) * (last - 0.5);
      last = x;
    }
    const chiSquare = buckets.reduce((total, n) => total + (n - count / 100) ** 2 / (count / 100), 0);
    // 99 degrees of freedom: one random test in a thousand passes 149. The numbers here are fixed,
    // so the test never flickers.
    expect(chiSquare).toBeLessThan(149);
    expect(Math.abs(sum / count - 0.5)).toBeLessThan(0.01);
    expect(Math.abs((product / count) * 12)).toBeLessThan(0.03);
  });
});
