import { expect, it } from "vitest";
import { Pace, pauseBefore } from "./pace.js";

it("has more under way with each answer, up to its most, and fewer after refusals", () => {
  const pace = new Pace(100);
  const first = pace.limit;
  pace.answered();
  expect(pace.limit).toBe(first + 1);
  for (let i = 0; i < 200; i++) pace.answered();
  expect(pace.limit).toBe(100);
  for (let i = 0; i < 10; i++) pace.refused(0);
  expect(pace.limit).toBe(70);
  for (let i = 1; i < 50; i++) pace.refused(1_000 * i);
  expect(pace.limit).toBe(1);
});

it("waits for longer after each refusal of a line, and never for ever", () => {
  expect(pauseBefore(3, 0.5)).toBeGreaterThan(pauseBefore(1, 0.5));
  expect(pauseBefore(1e6, 1)).toBe(5_000);
});
