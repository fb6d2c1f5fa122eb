/**
 * The loop's next move, and the amount of work that it takes on. Pure: `loop.ts` carries it out.
 */

/**
 * - `hear`: wait for the oldest iteration in the engine, and take its records.
 * - `run-alone`: compute the next record of a stream while nothing else computes.
 * - `ask`: ask the engine for an iteration.
 * - `wait-for-redis`: wait until Redis has taken some of the records on their way.
 * - `wait-for-work`: wait until something has come, or is due.
 */
export type NextMove = "hear" | "run-alone" | "ask" | "wait-for-redis" | "wait-for-work";

export interface LoopFacts {
  /** Iterations under way in the engine. */
  readonly asked: number;
  /** Streams in the engine. */
  readonly generating: number;
  /** Streams that wait to run alone. */
  readonly suspected: number;
  /** How long streams have run alone since the last iteration of other streams, in ms. */
  readonly aloneMs: number;
  /** Iterations whose records wait for Redis. */
  readonly lag: number;
}

/**
 * Most iterations whose records may wait for Redis. Beyond that the engine pauses, so a slow Redis
 * slows the streams down instead of filling the memory.
 */
export const MAX_LAG = 8;

/**
 * Most iterations to ask for at a time. With two, the engine finds its next question at once,
 * without a wait for this thread.
 */
export const MAX_ASKED = 2;

/**
 * How long streams run alone, one after the other, before other streams get their next tokens, in
 * ms. Many suspects are innocent, and each has a waiting reader.
 */
export const ALONE_TURN_MS = 100;

export function nextMove({ asked, generating, suspected, aloneMs, lag }: LoopFacts): NextMove {
  if (asked > 0) return "hear";
  const othersTurn = generating > 0 && aloneMs >= ALONE_TURN_MS;
  if (suspected > 0 && !othersTurn) return "run-alone";
  if (generating === 0) return "wait-for-work";
  return lag >= MAX_LAG ? "wait-for-redis" : "ask";
}

/** @returns whether to ask for one more iteration while the engine computes */
export function mayAskAhead({ asked, generating, suspected, lag }: LoopFacts): boolean {
  return generating > 0 && suspected === 0 && asked < MAX_ASKED && lag + asked < MAX_LAG;
}

/**
 * @param slots most choices of new requests to generate at once
 * @returns the most choices that the generator may have under way when another request joins. A new
 * request without a token can wait in the queue. An interrupted stream has a waiting reader, so
 * takeovers get as many choices again
 */
export function slotsFor(origin: "fresh" | "suspect", slots: number): number {
  return origin === "fresh" ? slots : 2 * slots;
}
