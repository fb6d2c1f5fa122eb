/**
 * When Redis is asked about which open request. A request is looked at when there is a reason to:
 * NATS is down, a message is missing, or its reply goes to another gateway. Without any reason
 * requests are still looked at in turn, but so few a second that it costs nothing, however many are
 * open.
 */
import { TimerWheel } from "./timer-wheel.js";

export interface Timed {
  /** When it was first expected, in ms on `performance.now()`'s clock. */
  readonly openedAt: number;
  /** Whether its reply goes to another gateway, which admitted it first. */
  readonly isAnsweredElsewhere: boolean;
}

/**
 * Where no reply will come, a request is looked at each time after a tenth of the time that it has
 * been open, within these bounds in ms. So its answer is a tenth later at most, and a long wait
 * costs little. With the time that a round of looks takes, each of 10 000 is looked at every
 * 100 ms.
 */
const POLL = { share: 0.1, least: 25, most: 75, mostElsewhere: 500 };
/** A look that failed is repeated after this many ms. */
const RETRY_MS = 100;
/**
 * Looks without a reason: each request at most this often, in ms, and this many a second in all.
 * They are made together, since a call costs Redis as much as a look.
 */
const SPOT_CHECK = { everyMs: 500, perSecond: 10, together: 5 };
/** All requests are looked at for a reason at most this often, in ms. */
const ALL_EVERY_MS = 100;

export class LookTimes<Item extends Timed> {
  /** All open requests. */
  readonly #open = new Set<Item>();
  /** Those that there is a reason to look at. */
  readonly #polls: TimerWheel<Item>;
  readonly #spotChecks: TimerWheel<Item>;
  /** When spot checks are made again. */
  #spotChecksAt: number;
  /** When all were last due, and whether they are to be due again. */
  #allAt = -Infinity;
  #isAllWanted = false;

  /** @param now in ms on `performance.now()`'s clock, as all times here */
  constructor(now: number) {
    this.#polls = new TimerWheel(now);
    this.#spotChecks = new TimerWheel(now);
    this.#spotChecksAt = now;
  }

  /** Adds a request, or plans its next look after one that found no outcome. */
  plan(item: Item, isBusUp: boolean, now: number): void {
    this.#open.add(item);
    // A message that came during the look may have asked for another one.
    if (this.#polls.has(item)) return;
    if (isBusUp && !item.isAnsweredElsewhere) {
      this.#spotChecks.set(item, now + SPOT_CHECK.everyMs);
      return;
    }
    const most = isBusUp ? POLL.mostElsewhere : POLL.most;
    const pauseMs = Math.min(Math.max(POLL.least, (now - item.openedAt) * POLL.share), most);
    this.#spotChecks.delete(item);
    this.#polls.set(item, now + pauseMs);
  }

  /** Plans the next look after one that failed. */
  planRetry(item: Item, now: number): void {
    if (this.#open.has(item) && !this.#polls.has(item)) this.#polls.set(item, now + RETRY_MS);
  }

  /** There is a reason to look at this one. */
  wantSoon(item: Item): void {
    this.#polls.set(item, 0);
  }

  /** There is a reason to look at all that are open. */
  wantAll(): void {
    this.#isAllWanted = true;
  }

  remove(item: Item): void {
    this.#open.delete(item);
    this.#polls.delete(item);
    this.#spotChecks.delete(item);
  }

  /** Takes the requests that are to be looked at now, longest due first. */
  takeDue(now: number): Item[] {
    if (this.#isAllWanted && now - this.#allAt >= ALL_EVERY_MS) {
      this.#isAllWanted = false;
      this.#allAt = now;
      for (const item of this.#open) this.#polls.set(item, 0);
    }
    const due = this.#polls.takeDue(now);
    for (const item of due) this.#spotChecks.delete(item);
    if (now < this.#spotChecksAt) return due;
    this.#spotChecksAt = now + (1_000 / SPOT_CHECK.perSecond) * SPOT_CHECK.together;
    return [...due, ...this.#spotChecks.takeDue(now, SPOT_CHECK.together)];
  }
}
