/**
 * How many lines of a batch are under way: as few as give as many answers in a second. Whatever is
 * under way beyond that only waits, and others wait behind it wherever requests are not ordered. So
 * it is tried from time to time whether more lines, or fewer, make a difference. Refusals say at
 * once that there are too many.
 */
const FIRST = 32;
/** No fewer are tried, though refusals may leave fewer. */
const FEW = 16;
const LEAST = 1;
/** By how much a try differs. */
const STEP = 1.5;
/** Of the rate before, what a try with more must give, and one with fewer, to be gone on from. */
const WORTH = { more: 1.1, fewer: 0.97 };
/** A rate is taken over this time, in ms, and over so many answers for each line under way. */
const MEASURED = { ms: 1_000, rounds: 4 };
/** Rates that are taken before the next try, after one that was not worth it. */
const REST = 8;
/** Of what is under way, this is left after a refusal. */
const LEFT = 0.7;
/** Refusals that come together, in ms, are one sign. */
const TOGETHER_MS = 100;
const PAUSE_MS = { first: 50, most: 5_000 };

export class Pace {
  readonly #most: number;
  #limit: number;
  /** What there was before the try that is going on. */
  #before: { readonly limit: number; readonly rate: number } | undefined;
  #upwards = true;
  #rest = 0;
  #answers = 0;
  #since: number | undefined;
  #refusedAt = -Infinity;

  /** @param most lines */
  constructor(most: number) {
    this.#most = most;
    this.#limit = Math.min(FIRST, most);
  }

  get limit(): number {
    return this.#limit;
  }

  /** @param now in ms */
  answered(now: number): void {
    this.#since ??= now;
    this.#answers++;
    const ms = now - this.#since;
    if (ms < MEASURED.ms || this.#answers < MEASURED.rounds * this.#limit) return;
    const rate = this.#answers / ms;
    this.#answers = 0;
    this.#since = now;
    if (this.#before !== undefined) this.#judge(this.#before, rate);
    else if (this.#rest > 0) this.#rest--;
    else this.#try(rate);
  }

  refused(now: number): void {
    if (now - this.#refusedAt < TOGETHER_MS) return;
    this.#refusedAt = now;
    this.#limit = Math.max(LEAST, Math.floor(this.#limit * LEFT));
    this.#giveUp(this.#limit);
  }

  #judge(before: { readonly limit: number; readonly rate: number }, rate: number): void {
    const worth = this.#upwards ? WORTH.more : WORTH.fewer;
    if (rate >= worth * before.rate) return this.#try(rate);
    this.#giveUp(before.limit);
    this.#upwards = !this.#upwards;
  }

  #try(rate: number): void {
    const limit = this.#limit;
    const next = this.#upwards ? Math.ceil(limit * STEP) : Math.max(FEW, Math.floor(limit / STEP));
    this.#before = { limit, rate };
    this.#limit = this.#upwards ? Math.min(this.#most, next) : Math.min(limit, next);
    if (this.#limit !== limit) return;
    this.#giveUp(limit);
    this.#upwards = !this.#upwards;
  }

  #giveUp(limit: number): void {
    this.#limit = limit;
    this.#before = undefined;
    this.#rest = REST;
    this.#answers = 0;
    this.#since = undefined;
  }
}

/** @param tries how often a line was refused @returns ms until it is tried again */
export function pauseBefore(tries: number, random: number): number {
  return Math.min(PAUSE_MS.most, PAUSE_MS.first * 2 ** Math.min(tries, 10)) * (0.5 + random / 2);
}
