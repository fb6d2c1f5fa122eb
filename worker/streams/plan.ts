/** What the loop does next, and how much it takes on. Pure: `loop.ts` carries it out. */

/**
 * - `hear`: wait for the iteration that the engine was asked for first, and take its records.
 * - `run-alone`: compute the first record of a suspected stream while nothing else computes.
 * - `ask`: ask the engine for an iteration.
 * - `wait-for-redis`: wait until Redis has taken some of the records that are on their way to it.
 * - `wait-for-work`: wait until something has come, or is due.
 */
export type NextMove = "hear" | "run-alone" | "ask" | "wait-for-redis" | "wait-for-work";

export interface LoopFacts {
  /** Iterations that the engine was asked for and has not been heard of. */
  readonly asked: number;
  /** Streams that the engine has. */
  readonly generating: number;
  /** Streams that wait to run alone. */
  readonly suspected: number;
  /** How long suspected streams have run since the others last had an iteration, in ms. */
  readonly aloneMs: number;
  /** Iterations whose records wait for Redis. */
  readonly lag: number;
}

/**
 * Most iterations whose records may wait for Redis. Past that the engine pauses, so a slow Redis
 * slows the streams down instead of filling the memory.
 */
export const MAX_LAG = 8;

/**
 * Most iterations asked for at a time: the engine finds the next question when it has answered one,
 * and does not wait for this thread to come to it.
 */
export const MAX_ASKED = 2;

/**
 * Suspected streams run one after the other for this long before the others get their next tokens:
 * many suspects are innocent, and each has a reader who waits.
 */
export const ALONE_TURN_MS = 100;

export function nextMove({ asked, generating, suspected, aloneMs, lag }: LoopFacts): NextMove {
  if (asked > 0) return "hear";
  const othersTurn = generating > 0 && aloneMs >= ALONE_TURN_MS;
  if (suspected > 0 && !othersTurn) return "run-alone";
  if (generating === 0) return "wait-for-work";
  return lag >= MAX_LAG ? "wait-for-redis" : "ask";
}

/**
 * @returns whether to ask for one more iteration while the engine computes those asked for already
 */
export function mayAskAhead({ asked, generating, suspected, lag }: LoopFacts): boolean {
  return generating > 0 && suspected === 0 && asked < MAX_ASKED && lag + asked < MAX_LAG;
}

/**
 * @param slots how many choices of new requests a generator makes at once
 * @returns how many it may be busy with when it takes one more. A request of which nobody has seen
 * a token can wait in the queue; the reader of a stream that was interrupted waits in its middle,
 * so a worker takes over as many again as it would begin
 */
export function slotsFor(origin: "fresh" | "suspect", slots: number): number {
  return origin === "fresh" ? slots : 2 * slots;
}
