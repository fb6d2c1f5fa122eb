/**
 * How many entries the ready stream of a lane holds before requests are parked: what its workers
 * can take soon, and little more, since it alone is first come, first served.
 */

/** Longer than this no ready stream need be, however many workers there are. */
const MOST = 4_096;

/**
 * Requests fall into buckets at random. So a lane's share of what all workers have at once varies
 * by its square root, and three of these keep nearly everything out of the parked ones that workers
 * have room for.
 * @param takenAtOnce by all workers of the model together; undefined where that is not known
 * @returns undefined where nothing may be parked
 */
export function readyWindow(takenAtOnce: number | undefined, buckets: number): number | undefined {
  if (takenAtOnce === undefined) return undefined;
  const share = takenAtOnce / buckets;
  return Math.min(MOST, 2 + Math.ceil(share + 3 * Math.sqrt(share)));
}
