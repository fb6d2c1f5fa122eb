/**
 * How many choices a generator makes at once. A request that nobody has seen a token of can wait in the queue; the reader of a stream that was interrupted waits in its middle, so
 * a worker takes over as many again as it would begin.
 */
export function slotsFor(how: "fresh" | "suspect", slots: number): number {
  return how === "fresh" ? slots : 2 * slots;
}
