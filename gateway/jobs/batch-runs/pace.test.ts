import { expect, it } from "vitest";
import { Pace, pauseBefore } from "./pace.js";

/**
 * Answers as a fleet does that can have so many lines at once, each for a tenth of a second.
 * @returns the limits that there were in the second half
 */
function run(pace: Pace, atOnce: number, seconds: number): number[] {
  const limits = new Set<number>();
  let now = 0;
  while (now < seconds * 1_000) {
    now += 100 / Math.min(pace.limit, atOnce);
    pace.answered(now);
    if (now > seconds * 500) limits.add(pace.limit);
  }
  return [...limits];
}

it.each([20, 64, 150])("has about as many lines under way as a fleet takes that takes %i at once", (atOnce) => {
  const limits = run(new Pace(256), atOnce, 300);
  expect(Math.max(...limits)).toBeLessThanOrEqual(2.25 * atOnce);
  expect(Math.min(...limits)).toBeGreaterThan(atOnce / 2);
});

it("has as many as it may where the fleet takes more, and fewer after refusals", () => {
  const pace = new Pace(100);
  expect(Math.min(...run(pace, 1_000, 100))).toBeGreaterThan(60);
  run(pace, 1_000, 100);
  const before = pace.limit;
  for (let i = 0; i < 10; i++) pace.refused(0);
  expect(pace.limit).toBe(Math.floor(0.7 * before));
  for (let i = 1; i < 50; i++) pace.refused(1_000 * i);
  expect(pace.limit).toBe(1);
  run(pace, 1_000, 200);
  expect(pace.limit).toBeGreaterThan(60);
});

it("waits for longer after each refusal of a line, and never for ever", () => {
  expect(pauseBefore(3, 0.5)).toBeGreaterThan(pauseBefore(1, 0.5));
  expect(pauseBefore(1e6, 1)).toBe(5_000);
});
