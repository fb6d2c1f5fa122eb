/**
 * How many entries the ready stream of a lane holds before the gateway parks requests: as many as
 * its workers can take soon, and little more, because the ready stream alone is first come, first
 * served.
 */

/** Most entries of a ready stream, however many workers there are. */
const MOST = 4_096;

/**
 * Requests fall into buckets at random. So a lane's share of the requests that all workers hold at
 * once varies by the square root of that share. With three times the root on top, nearly every
 * request that workers have room for is in the ready stream.
 * @param takenAtOnce by all workers of the model together; undefined if that is not known
 * @returns undefined if nothing may be parked
 */
export function readyWindow(takenAtOnce: number | undefined, buckets: number): number | undefined {
  if (takenAtOnce === undefined) return undefined;
  const share = takenAtOnce / buckets;
  return Math.min(MOST, 2 + Math.ceil(share + 3 * Math.sqrt(share)));
}
