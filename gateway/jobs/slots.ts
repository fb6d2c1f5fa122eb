/**
 * How many attempts may run at a time, of each name: a receiver that is slow has so many of its
 * own waiting, and takes no room from others. Who finds none is told when to come again, each a
 * little later than the one before, so that hardly anybody has to come twice; and is called sooner
 * where a slot is given back. Where all that were tried last have hung, nobody is let in for a
 * while, and then one to see whether it still does.
 */
interface Turn {
  running: number;
  /** When the last of those that were sent away is to come again. */
  nextAt: number;
  /** How long an attempt takes, by those of late. */
  msEach: number;
  /** How many attempts have hung since one did not. */
  hung: number;
  /** Until then nobody is let in; in the past where nothing hangs. */
  shutUntil: number;
  /** Those that were sent away, in their order. */
  readonly away: Set<string>;
}

/** What an attempt came to. */
interface Took {
  readonly ms: number;
  /** Whether there was no answer within its time. */
  readonly hung: boolean;
}

/** What is believed of an attempt unless it is said: most receivers are quick. */
const USUAL_MS = 20;
/**
 * So many of those that were sent away are called; others come when they were told, which may be
 * minutes after there was room. A name takes some 100 bytes.
 */
const MOST_AWAY = 20_000;
/** Above this many names, those with nothing under way are forgotten. */
const MOST_KNOWN = 10_000;
/** How much the newest attempt counts. */
const NEWEST = 0.3;
/** Of what lies between two that are sent away. */
const BOUNDS_MS = { least: 2, most: 5_000 };
/** Nobody is sent away for longer: a receiver that is well again need not wait for more. */
const LONGEST_MS = 300_000;
/** For how long nobody is let in at first; it doubles each time that it hangs again. */
const SHUT_MS = 5_000;

export class Slots {
  readonly #usualMs: number;
  readonly #limit: number;
  readonly #breaks: boolean;
  readonly #turns = new Map<string, Turn>();
  /** All that are away of any turn. */
  readonly #away = new Set<string>();

  /**
   * @param limit attempts of one name at a time
   * @param breaks whether nobody is let in for a while where so many have hung, one after another
   * @param usualMs how long an attempt is believed to take before the first has ended
   */
  constructor(limit: number, { breaks = false, usualMs = USUAL_MS } = {}) {
    this.#usualMs = usualMs;
    this.#limit = limit;
    this.#breaks = breaks;
  }

  /**
   * Takes a slot, which `release` gives back.
   * @param who is to be called where there is none
   * @returns after how many ms to come again; undefined where there is one
   */
  take(name: string, now: number, who: string): number | undefined {
    const fresh = { running: 0, nextAt: now, msEach: this.#usualMs, hung: 0, shutUntil: 0, away: new Set<string>() };
    const turn = this.#turns.get(name) ?? fresh;
    this.#turns.set(name, turn);
    const isBroken = this.#isBroken(turn);
    const isOpen = isBroken ? turn.running === 0 && now >= turn.shutUntil : turn.running < this.#limit;
    if (isOpen) {
      turn.running++;
      turn.away.delete(who);
      this.#away.delete(who);
      return undefined;
    }
    turn.nextAt = Math.max(turn.nextAt, now, isBroken ? turn.shutUntil : 0) + this.#apart(turn);
    turn.nextAt = Math.min(turn.nextAt, now + LONGEST_MS);
    if (turn.away.size < MOST_AWAY) {
      turn.away.add(who);
      this.#away.add(who);
    }
    return turn.nextAt - now;
  }

  /**
   * @param took undefined where no attempt was made
   * @returns how many may be called now: as many as there is room for. Of those that were called
   * before, another process may have taken some, and sent them away for want of room of its own
   */
  release(name: string, now: number, took?: Took): number {
    const turn = this.#turns.get(name);
    if (turn === undefined) return 0;
    turn.running--;
    if (took !== undefined) {
      const before = this.#apart(turn);
      turn.msEach += NEWEST * (took.ms - turn.msEach);
      turn.hung = took.hung ? turn.hung + 1 : 0;
      if (this.#isBroken(turn)) turn.shutUntil = now + Math.min(SHUT_MS * 2 ** (turn.hung - this.#limit), LONGEST_MS);
      // As if those who were sent away had been told what is known now.
      turn.nextAt = now + Math.max(turn.nextAt - now, 0) * (this.#apart(turn) / before);
    }
    if (turn.running === 0 && turn.away.size === 0 && this.#turns.size > MOST_KNOWN) this.#turns.delete(name);
    if (this.#isBroken(turn)) return 0;
    return Math.min(this.#limit - turn.running, turn.away.size);
  }

  /** @returns who was sent away first of those that were not called yet */
  next(name: string): string | undefined {
    const away = this.#turns.get(name)?.away;
    const [first] = away ?? [];
    if (first === undefined) return undefined;
    away?.delete(first);
    this.#away.delete(first);
    return first;
  }

  /** Whether somebody was sent away, and is to be called. */
  isAway(who: string): boolean {
    return this.#away.has(who);
  }

  #isBroken({ hung }: Turn): boolean {
    return this.#breaks && hung >= this.#limit;
  }

  #apart({ msEach }: Turn): number {
    return Math.min(Math.max(msEach / this.#limit, BOUNDS_MS.least), BOUNDS_MS.most);
  }
}
