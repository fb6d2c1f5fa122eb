/**
 * How many lines of a batch are under way, by what the queue has room for: more with each answer,
 * and fewer with each refusal.
 */
const FIRST = 32;
const LEAST = 1;
/** Of what is under way, this is left after a refusal. */
const LEFT = 0.7;
/** Refusals that come together, in ms, are one sign. */
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
