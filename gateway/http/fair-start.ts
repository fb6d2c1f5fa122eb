/**
 * The order in which requests begin when more come than the gateway's thread can begin at once:
 * tenants take turns by weight, so the requests of a flood wait behind each other, and another
 * tenant's request begins in the same turn of the event loop. Nothing waits while few requests
 * come.
 */
import type { Asking } from "./guard.js";

/** Whose a request is, as far as that is known without asking. */
export interface Share {
  /** Name of a tenant, or of a group of strangers. */
  readonly name: string;
  readonly weight: number;
}

/** Requests that begin in one turn of the event loop: about a millisecond of work. */
const MOST_AT_ONCE = 16;
/**
 * A heavier tenant takes turns as one of this weight, so nobody else has less than a hundredth.
 * Queue and workers know the whole weight.
 */
const MOST_WEIGHT = 100;
/** Further tenants share a line, because each turn looks at all lines. */
const MOST_LINES = 512;
const SHARED_LINE = "of many tenants";
/**
 * Requests that all connections may hold, of 7 KB each. Node parses all that it has read, so a
 * client that pipelines would fill the memory with requests that wait. Beyond this number each
 * further request lets the oldest of the longest line begin, and answers keep pace with reading.
 */
const MOST_HELD = 16_384;
/** The share of a request whose headers cannot be read, which is refused when it begins. */
const UNREADABLE: Share = { name: "unreadable", weight: 1 };

interface Line {
  readonly waiting: (() => void)[];
  readonly weight: number;
  /** Virtual time: how much the line has had by its weight. */
  at: number;
}

export interface FairStartSettings {
  readonly shareOf: (asking: Asking) => Share;
  /** How many requests connections hold that have not come for their turn yet. */
  readonly held?: () => number;
}

export class FairStart {
  readonly #settings: FairStartSettings;
  readonly #lines = new Map<string, Line>();
  /** The virtual time of the line that was served last. A line that comes anew starts there. */
  #clock = 0;
  /** Requests that have begun in this turn. */
  #begun = 0;
  #isServing = false;
  #waiting = 0;

  constructor(settings: FairStartSettings) {
    this.#settings = settings;
  }

  /**
   * Counts a request that is about to begin.
   * @param asking needed only if the request has to wait
   * @returns undefined if it may begin now, else a promise that resolves when it may, and never
   * rejects
   */
  turn(asking: () => Asking): Promise<void> | undefined {
    this.#serveNextTurn();
    if (this.#waiting === 0 && this.#begun < MOST_AT_ONCE) {
      this.#begun++;
      return undefined;
    }
    const line = this.#lineOf(this.#shareOf(asking));
    // A line that was empty earns nothing by that.
    if (line.waiting.length === 0) line.at = Math.max(line.at, this.#clock);
    this.#waiting++;
    const turn = new Promise<void>((resolve) => line.waiting.push(resolve));
    this.relieve();
    return turn;
  }

  /** Call this after a connection holds one request more. */
  relieve(): void {
    const { held } = this.#settings;
    if (this.#waiting === 0 || this.#waiting + (held?.() ?? 0) <= MOST_HELD) return;
    let longest: Line | undefined;
    for (const line of this.#lines.values()) {
      if (line.waiting.length > (longest?.waiting.length ?? 0)) longest = line;
    }
    if (longest !== undefined) this.#begin(longest);
  }

  /** The order of requests must not end the process, whatever their headers are. */
  #shareOf(asking: () => Asking): Share {
    try {
      return this.#settings.shareOf(asking());
    } catch {
      return UNREADABLE;
    }
  }

  #lineOf({ name, weight }: Share): Line {
    const known = this.#lines.get(name);
    if (known !== undefined) return known;
    if (this.#lines.size >= MOST_LINES && name !== SHARED_LINE) return this.#lineOf({ name: SHARED_LINE, weight: 1 });
    const line = { waiting: [], weight: Math.min(weight, MOST_WEIGHT), at: this.#clock };
    this.#lines.set(name, line);
    return line;
  }

  #serveNextTurn(): void {
    if (this.#isServing) return;
    this.#isServing = true;
    setImmediate(() => {
      this.#isServing = false;
      this.#begun = 0;
      while (this.#waiting > 0 && this.#begun < MOST_AT_ONCE) this.#beginNext();
      this.#forgetEmpty();
      if (this.#waiting > 0) this.#serveNextTurn();
    });
  }

  /** Begins a request of the line that has had the least. */
  #beginNext(): void {
    let next: Line | undefined;
    for (const line of this.#lines.values()) {
      if (line.waiting.length > 0 && (next === undefined || line.at < next.at)) next = line;
    }
    if (next === undefined) return;
    this.#clock = Math.max(this.#clock, next.at);
    this.#begun++;
    this.#begin(next);
  }

  #begin(line: Line): void {
    line.at += 1 / line.weight;
    this.#waiting--;
    line.waiting.shift()?.();
  }

  /** A line that has had more than others is kept, so that it cannot come anew for more. */
  #forgetEmpty(): void {
    for (const [name, { waiting, at }] of this.#lines) {
      if (waiting.length === 0 && (at <= this.#clock || this.#waiting === 0)) this.#lines.delete(name);
    }
  }
}
