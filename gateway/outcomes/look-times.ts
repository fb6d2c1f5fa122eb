/**
 * When the gateway asks Redis about which open request. A look has a reason: NATS is down, a
 * message is missing, or the reply goes to another gateway. Without a reason the gateway still
 * looks at requests in turn, but at so few a second that the cost is nothing, however many are
 * open.
 */
import { TimerWheel } from "./timer-wheel.js";

export interface Timed {
  /** Start of the first wait for this request, in ms on `performance.now()`'s clock. */
  readonly openedAt: number;
  /** Whether the reply goes to another gateway, which admitted the request first. */
  readonly isAnsweredElsewhere: boolean;
}

/**
 * If no reply will come, the pause between looks at a request is a tenth of its age, within these
 * bounds in ms. So its answer is a tenth later at most, and a long wait costs little. With the time
 * that a round of looks takes, 10 000 requests get a look every 100 ms each.
 */
const POLL = { share: 0.1, least: 25, most: 75, mostElsewhere: 500 };
/** Pause after a look that failed, in ms. */
const RETRY_MS = 100;
/**
 * Looks without a reason: each request at most this often, in ms, and this many a second in all.
 * Several looks share a call, because a call costs Redis as much as a look.
 */
const SPOT_CHECK = { everyMs: 500, perSecond: 10, together: 5 };
/** The gateway looks at all requests for a reason at most this often, in ms. */
const ALL_EVERY_MS = 100;

export class LookTimes<Item extends Timed> {
  /** All open requests. */
  readonly #open = new Set<Item>();
  /** Requests with a reason for a look. */
  readonly #polls: TimerWheel<Item>;
  readonly #spotChecks: TimerWheel<Item>;
  /** When the next spot checks begin. */
  #spotChecksAt: number;
  /** When all requests were last due, and whether to make all due again. */
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
    // A message that came during the look may have asked for another look.
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

  /** Plans a look at this request at once, for a reason. */
  wantSoon(item: Item): void {
    this.#polls.set(item, 0);
  }

  /** Plans a look at all open requests, for a reason. */
  wantAll(): void {
    this.#isAllWanted = true;
  }

  remove(item: Item): void {
    this.#open.delete(item);
    this.#polls.delete(item);
    this.#spotChecks.delete(item);
  }

  /** Takes the requests that are due for a look, longest due first. */
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
