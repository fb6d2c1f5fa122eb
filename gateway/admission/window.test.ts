/** How many entries the ready stream of a lane holds for the room at workers. */
import { expect, it } from "vitest";
import { readyWindow } from "./window.js";

it.each([
  ["one bucket has room for all that is taken", 128, 1, 164],
  ["a bucket of many has room for its share, and for chance", 128, 16, 19],
  ["a model without batches", 2, 16, 4],
  ["many workers", 64 * 128, 16, 582],
  ["no end of workers", 1e6, 1, 4_096],
  ["a worker that does not take in what is parked", undefined, 16, undefined],
])("%s", (_, taken, buckets, window) => {
  expect(readyWindow(taken, buckets)).toBe(window);
});
