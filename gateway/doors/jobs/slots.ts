/**
 * Limits the attempts that run at a time under each name, for example at a receiver. A slow
 * receiver fills only its own slots, so other receivers lose no room. A caller that finds no free
 * slot gets a wait, each caller a little longer than the caller before, so that few callers wait
 * twice. When a slot becomes free, the process calls a waiting caller early. If the last attempts
 * have all hung, the name closes for a while, and then lets one attempt in to see whether the
 * receiver still hangs.
 */
interface Turn {
  running: number;
  /** When the newest waiting caller comes again. */
  nextAt: number;
  /** How long an attempt takes, in ms: an average in which recent attempts count most. */
  msEach: number;
  /** How many attempts in a row have hung. */
  hung: number;
  /** If the last attempts have hung, no attempt starts before this time. */
  shutUntil: number;
  /** Callers that wait, in their order. */
  readonly away: Set<string>;
}

/** How an attempt has ended. */
interface Took {
  readonly ms: number;
  /** Whether the time of the attempt ended without an answer. */
  readonly hung: boolean;
}

/**
 * Usual estimate of an attempt's time before the first has ended, in ms: most receivers are quick.
 */
const USUAL_MS = 20;
/**
 * Most waiting callers of a name that `next` can return. Any further caller comes only when its
 * wait is over, which may be minutes after a slot is free. A caller takes some 100 bytes.
 */
const MOST_AWAY = 20_000;
/** Above this many names, forgets names without attempts and waiting callers. */
const MOST_KNOWN = 10_000;
/** Weight of the newest attempt in the average. */
const NEWEST = 0.3;
/** Bounds of the time between two waiting callers, in ms. */
const BOUNDS_MS = { least: 2, most: 5_000 };
/** The longest wait, in ms: a receiver that has recovered gets an attempt within this time. */
const LONGEST_MS = 300_000;
/**
 * First time for which a name closes, in ms. The time doubles with each attempt that hangs again.
 */
const SHUT_MS = 5_000;

export class Slots {
  readonly #usualMs: number;
  readonly #limit: number;
  readonly #breaks: boolean;
  readonly #turns = new Map<string, Turn>();
  /** All waiting callers, under any name. */
  readonly #away = new Set<string>();

  /**
   * @param limit attempts of one name at a time
   * @param breaks whether a name closes after as many attempts in a row have hung as there are
   * slots
   * @param usualMs estimate of an attempt's time before the first has ended
   */
  constructor(limit: number, { breaks = false, usualMs = USUAL_MS } = {}) {
    this.#usualMs = usualMs;
    this.#limit = limit;
    this.#breaks = breaks;
  }

  /**
   * Takes a slot, which `release` gives back.
   * @param who the caller, which `next` returns later if no slot is free
   * @returns after how many ms the caller should come again; undefined if the caller has a slot
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
   * @param took undefined if the caller made no attempt
   * @returns how many waiting callers to call now: as many as have room. Another process may have
   * taken a caller of an earlier call, and may have put the caller off for want of its own slots
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
      // Scales the time, as if earlier callers had got their waits by the new average.
      turn.nextAt = now + Math.max(turn.nextAt - now, 0) * (this.#apart(turn) / before);
    }
    if (turn.running === 0 && turn.away.size === 0 && this.#turns.size > MOST_KNOWN) this.#turns.delete(name);
    if (this.#isBroken(turn)) return 0;
    return Math.min(this.#limit - turn.running, turn.away.size);
  }

  /** @returns the first waiting caller that no earlier call has returned */
  next(name: string): string | undefined {
    const away = this.#turns.get(name)?.away;
    const [first] = away ?? [];
    if (first === undefined) return undefined;
    away?.delete(first);
    this.#away.delete(first);
    return first;
  }

  /** Whether this caller waits, and `next` has not returned the caller. */
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
