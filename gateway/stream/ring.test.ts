import { expect, it } from "vitest";
import { recordOf } from "./records.js";
import { Ring } from "./ring.js";

function fill(ring: Ring, count: number, bytes = 10): void {
  for (let i = 0; i < count; i++) ring.push(recordOf(ring.next, Buffer.alloc(bytes, ring.next % 256)));
}

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
  for (const i of heldBy(ring)) expect(ring.at(i)).toEqual(recordOf(i, Buffer.alloc(10, i % 256)));
});

it("is bounded by bytes, and holds the newest record however large", () => {
  const ring = new Ring(0);
  fill(ring, 20, 10_000);
  expect(heldBy(ring)).toEqual([14, 15, 16, 17, 18, 19]);
  fill(ring, 1, 1_000_000);
  expect(heldBy(ring)).toEqual([20]);
  fill(ring, 2);
  expect(heldBy(ring)).toEqual([21, 22]);
});

it("keeps no view of what it is given", () => {
  const ring = new Ring(0);
  const arrived = Buffer.from("abc");
  ring.push(recordOf(0, arrived));
  arrived.fill("x");
  expect(ring.at(0)?.bytes.toString()).toBe("abc");
});
