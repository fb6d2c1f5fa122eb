import { expect, it } from "vitest";
import { Slots } from "./slots.js";

it("has so many for each name, and sends others away, each for a little longer", () => {
  const slots = new Slots(2);
  expect([slots.take("a", 0), slots.take("a", 0)]).toEqual([undefined, undefined]);
  const first = slots.take("a", 0) ?? 0;
  const second = slots.take("a", 0) ?? 0;
  expect(first).toBeGreaterThan(0);
  expect(second).toBeGreaterThan(first);
  expect(slots.take("b", 0)).toBeUndefined();
  slots.release("a", 10, 10);
  expect(slots.take("a", 10)).toBeUndefined();
});

it("sends away for longer where attempts take long", () => {
  const wait = (tookMs: number) => {
    const slots = new Slots(1);
    for (let i = 0; i < 20; i++) {
      slots.take("a", 0);
      slots.release("a", 0, tookMs);
    }
    slots.take("a", 0);
    return slots.take("a", 0) ?? 0;
  };
  expect(wait(4_000)).toBeGreaterThan(3_000);
  expect(wait(100)).toBeLessThan(300);
  expect(wait(1e9)).toBe(5_000);
});
