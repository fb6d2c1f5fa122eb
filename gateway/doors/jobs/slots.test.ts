import { expect, it } from "vitest";
import { Slots } from "./slots.js";

it("has so many for each name, and sends others away, each for a little longer", () => {
  const slots = new Slots(2);
  expect([slots.take("a", 0, "one"), slots.take("a", 0, "one")]).toEqual([undefined, undefined]);
  const first = slots.take("a", 0, "one") ?? 0;
  const second = slots.take("a", 0, "one") ?? 0;
  expect(first).toBeGreaterThan(0);
  expect(second).toBeGreaterThan(first);
  expect(slots.take("b", 0, "one")).toBeUndefined();
  slots.release("a", 10, { ms: 10, hung: false });
  expect(slots.take("a", 10, "one")).toBeUndefined();
});

it("sends away for longer where attempts take long", () => {
  const wait = (tookMs: number) => {
    const slots = new Slots(1);
    for (let i = 0; i < 20; i++) {
      slots.take("a", 0, "one");
      slots.release("a", 0, { ms: tookMs, hung: false });
    }
    slots.take("a", 0, "one");
    return slots.take("a", 0, "one") ?? 0;
  };
  expect(wait(4_000)).toBeGreaterThan(3_000);
  expect(wait(100)).toBeLessThan(300);
  expect(wait(1e9)).toBe(5_000);
});

it("lets nobody in for a while where as many as it has have hung, and then one at a time", () => {
  const slots = new Slots(2, { breaks: true });
  const attempt = (now: number, hung: boolean) => {
    expect(slots.take("a", now, "one")).toBeUndefined();
    slots.release("a", now, { ms: 10, hung });
  };
  attempt(0, true);
  attempt(0, true);
  expect(slots.take("a", 0, "one")).toBeGreaterThanOrEqual(5_000);
  expect(slots.take("b", 0, "one")).toBeUndefined();
  attempt(5_000, true);
  expect(slots.take("a", 5_000, "one")).toBeGreaterThanOrEqual(10_000);
  expect(slots.take("a", 15_000, "one")).toBeUndefined();
  expect(slots.take("a", 15_000, "one")).toBeGreaterThan(0);
  slots.release("a", 15_000, { ms: 10, hung: false });
  // The receiver has recovered.
  expect([slots.take("a", 15_000, "one"), slots.take("a", 15_000, "one")]).toEqual([undefined, undefined]);
});

it("calls as many as it has room for: another process may have taken those that it called before", () => {
  const slots = new Slots(3);
  for (let i = 0; i < 3; i++) slots.take("x", 0, `run-${i}`);
  for (let i = 0; i < 5_000; i++) slots.take("x", 0, `away-${i}`);
  const called = [1, 2, 3].map(() => {
    const calls = slots.release("x", 0, { ms: 10, hung: false });
    return Array.from({ length: calls }, () => slots.next("x"));
  });
  expect(called.map((all) => all.length)).toEqual([1, 2, 3]);
  expect(called.flat()).toEqual(Array.from({ length: 6 }, (_, i) => `away-${i}`));
  let left = 0;
  while (slots.next("x") !== undefined) left++;
  expect(left).toBe(5_000 - 6);
});

it("calls those that it has sent away, one for each slot, and as many as it has once it is well", () => {
  const slots = new Slots(2, { breaks: true });
  const took = (hung: boolean) => ({ ms: 10, hung });
  for (const one of ["a", "b", "c", "d", "e", "f"]) slots.take("x", 0, one);
  expect(slots.release("x", 0, took(true))).toBe(1);
  expect([slots.next("x"), slots.take("x", 0, "e"), slots.next("x"), slots.take("x", 0, "c")]).toEqual([
    "c",
    undefined,
    "d",
    expect.any(Number),
  ]);
  for (let i = 0; i < 2; i++) expect(slots.release("x", 0, took(true))).toBe(0);
  expect(slots.take("x", 60_000, "c")).toBeUndefined();
  slots.take("x", 60_000, "g");
  expect(slots.release("x", 60_000, took(false))).toBe(2);
  expect([slots.next("x"), slots.next("x"), slots.next("x")]).toEqual(["f", "g", undefined]);
  slots.take("y", 0, "h");
  expect(slots.release("y", 0, took(false))).toBe(0);
});

it("sends nobody away for longer than five minutes", () => {
  const slots = new Slots(1);
  slots.take("a", 0, "one");
  slots.release("a", 0, { ms: 1e9, hung: true });
  slots.take("a", 0, "one");
  const waits = Array.from({ length: 1_000 }, () => slots.take("a", 0, "one") ?? 0);
  expect(Math.max(...waits)).toBe(300_000);
});

it("has those that wait come again seldom where an attempt usually takes long", () => {
  const slots = new Slots(4, { usualMs: 4_000 });
  const due = new Map(Array.from({ length: 200 }, (_, i) => [`batch_${i}`, 0]));
  let looks = 0;
  for (let now = 0; now <= 60_000; now += 100) {
    for (const [id, at] of due) {
      if (at > now) continue;
      looks++;
      const waitMs = slots.take("tenant", now, id);
      if (waitMs === undefined) due.delete(id);
      else due.set(id, now + waitMs);
    }
  }
  // Each batch looks once. After that, some 60 looks follow in 60 s.
  expect(looks).toBeLessThan(200 + 70);
});
