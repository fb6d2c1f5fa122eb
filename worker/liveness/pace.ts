/** How often a worker beats, and what counts as silence, by the size of the fleet. Pure. */

/** Between two beats in a small fleet, in ms: a death is to show within a third of a second. */
const SMALL_FLEET_MS = 75;
/** Beats a second of all workers together, up to which the fleet counts as small. */
const BEATS_A_SECOND = 400;
/** Nobody watches over a worker that is alone, but it is to hear of others and of graves, in ms. */
const ALONE_MS = 400;
/**
 * In the largest fleet a beat may be late by a third of a lease. Nothing is lost between a worker
 * and Redis but with the link, and a new link is followed by a beat at once. Each beat costs Redis
 * as much as a command, 33 µs, most of it for the socket, so a thousand workers must not beat twice.
 */
const MOST_OF_LEASE = 0.6;
/** A living worker's main thread is held up for less than this, in ms. */
const HICCUP_MS = 80;
/**
 * How many workers ask who is silent, on average, within an interval. In a large fleet not all of
 * them need to.
 */
const ASKING = 4;

/**
 * @param living how many workers the fleet has
 * @returns ms between two beats of a worker
 */
export function beatEvery(living: number, leaseMs: number): number {
  const wanted = living <= 1 ? ALONE_MS : Math.max(SMALL_FLEET_MS, (living / BEATS_A_SECOND) * 1_000);
  return Math.min(wanted, leaseMs * MOST_OF_LEASE);
}

/**
 * All workers hear of the same number of living ones within a few beats, so a watcher knows how
 * often the others beat. One that is named too soon is found connected, and nothing happens to it.
 * @returns ms of silence that a living worker hardly reaches
 */
export function silenceAfter(living: number, leaseMs: number): number {
  return Math.min(beatEvery(living, leaseMs) * (1 + JITTER) + HICCUP_MS, leaseMs);
}

/** Intervals are this much longer or shorter, by lot, so that workers do not beat in step. */
export const JITTER = 0.1;

/**
 * With which probability a worker asks at a beat who is silent. It asks now and then in the largest
 * fleet, too: the answer also tells that the fleet has shrunk.
 */
export function asksWith(living: number): number {
  return Math.max(Math.min(1, ASKING / living), 1 / 32);
}
