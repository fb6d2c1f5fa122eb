import { describe, expect, it } from "vitest";
import { growth } from "./growth.js";
import { heapsOf } from "./held.js";

describe("the growth of a quantity", () => {
  const grows = (at: (minute: number) => number) =>
    growth(Array.from({ length: 12 }, (_, minute) => ({ mb: at(minute) }))).map((row) => row.grows);

  it("is found from the second sixth of the minutes to the last", () => {
    expect(grows((minute) => 100 + 3 * minute)).toEqual([true]);
    expect(grows((minute) => 100 + (minute % 2))).toEqual([false]);
    expect(grows((minute) => (minute < 2 ? 20 : 100))).toEqual([false]);
    expect(grows(() => Number.NaN)).toEqual([true]);
  });
});

describe("the heaps of a process", () => {
  it("have what their full collections left at least", () => {
    const lines = [
      "[1:0x7f00]     1 ms: Mark-Compact (reduce) 50.1 (60.0) -> 30.2 (55.0) MB, 9.00 / 0.00 ms  (average mu = 1)",
      "[1:0x7f00]     2 ms: Mark-Compact 60.1 (60.0) -> 31.0 (55.0) MB, 9.00 / 0.00 ms  (average mu = 1)",
      "[1:0x7f01]     3 ms: Mark-Compact 9.0 (9.5) -> 8.0 (9.0) MB, 1.00 / 0.00 ms  (average mu = 1)",
      "[1:0x7f00]     4 ms: Scavenge 40.0 (60.0) -> 12.0 (55.0) MB, 0.50 / 0.00 ms  (average mu = 1)",
    ];
    expect(heapsOf(lines.map((text) => ({ text })))).toEqual(
      new Map([
        ["1:0x7f00", 30.2],
        ["1:0x7f01", 8],
      ]),
    );
  });
});
