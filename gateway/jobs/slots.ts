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

const USUAL_MS = 1_000;
/** How much the newest attempt counts. */
const NEWEST = 0.3;
const BOUNDS_MS = { least: 20, most: 5_000 };

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
    const apart = Math.min(Math.max(turn.msEach / this.#limit, BOUNDS_MS.least), BOUNDS_MS.most);
    turn.nextAt = Math.max(turn.nextAt, now) + apart;
    return turn.nextAt - now;
  }

  /** @param tookMs how long the attempt took; undefined where none was made */
  release(name: string, now: number, tookMs?: number): void {
    const turn = this.#turns.get(name);
    if (turn === undefined) return;
    turn.running--;
    if (tookMs !== undefined) turn.msEach += NEWEST * (tookMs - turn.msEach);
    if (turn.running === 0 && turn.nextAt <= now) this.#turns.delete(name);
  }
}
