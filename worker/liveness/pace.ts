/** How often a worker beats, and what counts as silence, by the size of the fleet. Pure. */

/** Between two beats in a small fleet, in ms: a death is to show within a third of a second. */
const SMALL_FLEET_MS = 75;
/** Beats a second of all workers together, up to which the fleet counts as small. */
const BEATS_A_SECOND = 400;
/** Nobody watches over a worker that is alone, but it is to hear of others and of graves, in ms. */
const ALONE_MS = 400;
/**
 * In the largest fleet a beat may be late by a third of a lease. Nothing is lost between a worker
 * and Redis but with the link, and a new link is followed by a beat at once. A beat costs Redis
 * some 35 µs, two thirds of it for the socket, so a thousand workers had better beat but once.
 */
const MOST_OF_LEASE = 0.6;
/** A living worker's main thread is held up for less than this, in ms. */
const HICCUP_MS = 80;
/**
 * The same as a part of the interval, where that is more: in a large fleet somebody is always held
 * up for longer than the others ever are, and to look at each of them would cost more than beats.
 */
const HICCUP = 0.25;
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
 * A watcher that hears how many live knows how often the others beat. One that is named too soon is
 * found connected, and nothing happens to it.
 * @returns ms of silence that a living worker hardly reaches
 */
export function silenceAfter(living: number, leaseMs: number): number {
  const every = beatEvery(living, leaseMs);
  return Math.min(every * (1 + JITTER) + Math.max(HICCUP_MS, every * HICCUP), leaseMs);
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

/** Beats per ms of all workers together, at most, that follow a call about graves. */
const CALLED_PER_MS = 10;

/**
 * Between two beats of a worker that follow calls, in ms: anybody who reaches NATS may call, and
 * not all of a fleet are to ask Redis for each message.
 */
const CALLED_EVERY_MS = 200;

/**
 * @param last when the beat was due that the last call was followed by, on the clock of `now`
 * @param lot from 0 to below 1
 * @returns when a worker beats that is called now
 */
export function followsAt(now: number, last: number, living: number, lot: number): number {
  return Math.max(now, last + CALLED_EVERY_MS) + lot * comesWithin(living);
}

/**
 * After how many ms at most a worker beats that was called to a grave, by lot: not all of a large
 * fleet are to ask Redis at once.
 */
export function comesWithin(living: number): number {
  return living / CALLED_PER_MS;
}
