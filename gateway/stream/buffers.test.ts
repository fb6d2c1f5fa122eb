import { expect, it } from "vitest";
import { recordOf } from "./records.js";
import { Ring } from "./buffers.js";

function fill(ring: Ring, count: number, chars = 10): void {
  for (let i = 0; i < count; i++) ring.push(recordOf(ring.next, textOf(ring.next, chars)));
}

const textOf = (index: number, chars: number): string => String.fromCharCode(97 + (index % 26)).repeat(chars);

const heldBy = (ring: Ring): number[] =>
  Array.from({ length: ring.next + 10 }, (_, i) => i).filter((i) => ring.at(i) !== undefined);

it("holds the newest records, each under its index", () => {
  const ring = new Ring(5);
  expect([ring.next, heldBy(ring)]).toEqual([5, []]);
  fill(ring, 3);
  expect([ring.next, heldBy(ring)]).toEqual([8, [5, 6, 7]]);
  fill(ring, 1_000);
  expect(ring.next).toBe(1_008);
  expect(heldBy(ring)).toEqual(Array.from({ length: 128 }, (_, i) => 880 + i));
  for (const i of heldBy(ring)) expect(ring.at(i)).toEqual(recordOf(i, textOf(i, 10)));
  expect(ring.from(1_006)).toEqual([ring.at(1_006), ring.at(1_007)]);
  expect([ring.from(1_008), ring.from(879)]).toEqual([[], []]);
});

it("is bounded in size, and holds the newest record however large", () => {
  const ring = new Ring(0);
  fill(ring, 20, 10_000);
  expect(heldBy(ring)).toEqual([14, 15, 16, 17, 18, 19]);
  fill(ring, 1, 1_000_000);
  expect(heldBy(ring)).toEqual([20]);
  fill(ring, 2);
  expect(heldBy(ring)).toEqual([21, 22]);
});

it("knows what is pushed out by the next", () => {
  const ring = new Ring(0);
  expect(ring.hasRoom(1_000_000, 0)).toBe(true);
  fill(ring, 128, 100);
  expect([ring.hasRoom(1, 0), ring.hasRoom(1, 1)]).toEqual([false, true]);
  expect(ring.charsFrom(120)).toBe(800);
  expect([ring.hasRoom(65_536 - 800, 120), ring.hasRoom(65_537 - 800, 120)]).toEqual([true, false]);
  fill(ring, 1, 65_536 - 800);
  expect(heldBy(ring)[0]).toBe(120);
});
