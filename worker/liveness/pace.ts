/**
 * The interval between a worker's beats, and the length of silence that counts, by the size of the
 * fleet. Pure.
 */

/**
 * Between two beats in a small fleet, in ms. The fleet shall notice a death within a third of a
 * second.
 */
const SMALL_FLEET_MS = 75;
/** Most beats a second of all workers together in a fleet that counts as small. */
const BEATS_A_SECOND = 400;
/**
 * Between two beats of a lone worker, in ms. No worker watches over it, but the beats find new
 * workers and graves.
 */
const ALONE_MS = 400;
/**
 * The largest interval between beats, as a part of a lease. A beat may then still be a third of a
 * lease late. Messages between a worker and Redis are lost only with the link, and a beat follows
 * each new link at once. A beat costs Redis some 35 µs, two thirds of it for the socket, so a
 * thousand workers should beat rarely.
 */
const MOST_OF_LEASE = 0.6;
/** Delays of a living worker's main thread stay below this, in ms. */
const HICCUP_MS = 80;
/**
 * The same as a part of the interval, if that is more. In a large fleet some worker always has a
 * delay that the others never reach, and a look at each would cost more than the beats.
 */
const HICCUP = 0.25;
/**
 * Workers that ask for the silent workers, on average, within an interval. In a large fleet not
 * every worker needs to ask.
 */
const ASKING = 4;

/**
 * @param living number of workers in the fleet
 * @returns ms between two beats of a worker
 */
export function beatEvery(living: number, leaseMs: number): number {
  const wanted = living <= 1 ? ALONE_MS : Math.max(SMALL_FLEET_MS, (living / BEATS_A_SECOND) * 1_000);
  return Math.min(wanted, leaseMs * MOST_OF_LEASE);
}

/**
 * A watcher learns the size of the fleet, and thus the interval of the other workers' beats. A
 * worker that is named too soon still has its connection, so no harm is done.
 * @returns ms of silence that a living worker hardly reaches
 */
export function silenceAfter(living: number, leaseMs: number): number {
  const every = beatEvery(living, leaseMs);
  return Math.min(every * (1 + JITTER) + Math.max(HICCUP_MS, every * HICCUP), leaseMs);
}

/**
 * Intervals are longer or shorter by a random part up to this, so that workers do not beat in step.
 */
export const JITTER = 0.1;

/**
 * @returns the probability that a worker's beat asks for the silent workers. Workers ask now and
 *   then even in the largest fleet, because the answer also shows that the fleet has shrunk.
 */
export function asksWith(living: number): number {
  return Math.max(Math.min(1, ASKING / living), 1 / 32);
}

/**
 * A worker that has not asked for so long asks with its next beat, in ms: the answer also has the
 * news that every worker must hear.
 */
export const ASKS_WITHIN_MS = 10_000;

/** A worker asks for what rarely changes no sooner than this after an answer, in ms. */
export const NEWS_MS = 5_000;

/** Most beats per ms of all workers together after a call about graves. */
const CALLED_PER_MS = 10;

/**
 * Between two beats of a worker after calls, in ms. Any process that reaches NATS may call, and a
 * fleet should not ask Redis for each message.
 */
const CALLED_EVERY_MS = 200;

/**
 * @param last the time of the beat that followed the last call, on the clock of `now`
 * @param lot a random number from 0 to below 1
 * @returns the time of the beat that follows a call at `now`
 */
export function followsAt(now: number, last: number, living: number, lot: number): number {
  return Math.max(now, last + CALLED_EVERY_MS) + lot * comesWithin(living);
}

/**
 * @returns the longest random delay of a beat after a call about graves, in ms. The delays keep a
 *   large fleet from asking Redis all at once.
 */
export function comesWithin(living: number): number {
  return living / CALLED_PER_MS;
}
