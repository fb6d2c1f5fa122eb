/**
 * How many attempts may run at a time, of each name: a receiver that is slow has so many of its
 * own waiting, and takes no room from others. Who finds none is told when to come again, each a
 * little later than the one before, so that hardly anybody has to come twice.
 */
interface Turn {
  running: number;
  /** When the last of those that were sent away is to come again. */
  nextAt: number;
  /** How long an attempt takes, by those of late. */
  msEach: number;
}

/** What is believed before the first attempt has ended: most receivers are quick. */
const USUAL_MS = 20;
/** Above this many names, those with nothing under way are forgotten. */
const MOST_KNOWN = 10_000;
/** How much the newest attempt counts. */
const NEWEST = 0.3;
/** Of what lies between two that are sent away. */
const BOUNDS_MS = { least: 2, most: 5_000 };

export class Slots {
  readonly #limit: number;
  readonly #turns = new Map<string, Turn>();

  /** @param limit attempts of one name at a time */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Takes a slot, which `release` gives back.
   * @returns after how many ms to come again; undefined where there is one
   */
  take(name: string, now: number): number | undefined {
    const turn = this.#turns.get(name) ?? { running: 0, nextAt: now, msEach: USUAL_MS };
    this.#turns.set(name, turn);
    if (turn.running < this.#limit) {
      turn.running++;
      return undefined;
    }
    turn.nextAt = Math.max(turn.nextAt, now) + this.#apart(turn);
    return turn.nextAt - now;
  }

  /** @param tookMs how long the attempt took; undefined where none was made */
  release(name: string, now: number, tookMs?: number): void {
    const turn = this.#turns.get(name);
    if (turn === undefined) return;
    turn.running--;
    if (tookMs !== undefined) {
      const before = this.#apart(turn);
      turn.msEach += NEWEST * (tookMs - turn.msEach);
      // As if those who were sent away had been told what is known now.
      turn.nextAt = now + Math.max(turn.nextAt - now, 0) * (this.#apart(turn) / before);
    }
    if (turn.running === 0 && this.#turns.size > MOST_KNOWN) this.#turns.delete(name);
  }

  #apart({ msEach }: Turn): number {
    return Math.min(Math.max(msEach / this.#limit, BOUNDS_MS.least), BOUNDS_MS.most);
  }
}
