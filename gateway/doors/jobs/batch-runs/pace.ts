/**
 * Limits the lines of a batch that are under way by the room in the queue: more with each answer,
 * and fewer with each refusal.
 */
const FIRST = 32;
const LEAST = 1;
/** A refusal multiplies the limit by this number. */
const LEFT = 0.7;
/** Refusals within this time, in ms, count as one. */
const TOGETHER_MS = 100;
const PAUSE_MS = { first: 50, most: 5_000 };

export class Pace {
  readonly #most: number;
  #limit: number;
  #refusedAt = -Infinity;

  constructor(most: number) {
    this.#most = most;
    this.#limit = Math.min(FIRST, most);
  }

  get limit(): number {
    return Math.floor(this.#limit);
  }

  answered(): void {
    this.#limit = Math.min(this.#most, this.#limit + 1);
  }

  refused(now: number): void {
    if (now - this.#refusedAt < TOGETHER_MS) return;
    this.#refusedAt = now;
    this.#limit = Math.max(LEAST, this.#limit * LEFT);
  }
}

/** @param tries how often a line was refused @returns ms until it is tried again */
export function pauseBefore(tries: number, random: number): number {
  return Math.min(PAUSE_MS.most, PAUSE_MS.first * 2 ** Math.min(tries, 10)) * (0.5 + random / 2);
}
