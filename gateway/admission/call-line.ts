/**
 * Admission calls, one after the other. While a call is under way, what comes waits for the next
 * one: so under load calls grow, and requests of a tenant are admitted in the order in which they
 * came, through any cut of the link. A call is numbered, and repeated until its end is known or its
 * time is over; then the next number makes it harmless.
 */
import {
  admit,
  CALLS_KEPT_MS,
  type Admission,
  type Applicant,
  type Admitted,
  type Terms,
} from "#shared/queue/admission/admit.js";
import { limitInTheWay } from "#shared/queue/admission/room.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay, refusesWrites, retrying, within } from "#shared/retry.js";
import type { World } from "#shared/world.js";
import type { Size, Turns, Waiter } from "./turns.js";

/**
 * How long after it came the call of a request is still repeated, in ms, before its client is told
 * to retry; for what may wait long, after it was taken. It bridges a restart of Redis.
 */
const BUDGET_MS = 2_000;

/** How long a request waits for its turn, in ms, after a call that was given up. */
const WAITS_MS = {
  small: BUDGET_MS,
  /** Also a step behind a large one of its sequence. There may be many. */
  large: 5_000,
};

/**
 * How long each waits while Redis answers, in ms. A call may take long on a slow disk, and the next
 * one brings all that have waited for it.
 */
const WAITS_FOR_CALLS_MS = 10_000;

/**
 * For so long after a call was answered, in ms, its record is surely there, unless Redis has lost
 * it.
 */
const SURELY_KEPT_MS = CALLS_KEPT_MS / 2;

/** For so long at most, in ms, a call waits to hear whether there is room for what it brings. */
const PATIENCE_MS = 250;

/** An empty call that came to no end is made again after this pause, in ms. */
const AGAIN_MS = 200;

/** Where a request stands among those that wait. It keeps its place when it has to come again. */
export interface Place {
  /** Higher than that of all who came before. */
  readonly order: number;
  /** When it came, on `performance.now()`'s clock. */
  readonly since: number;
}

/** The request was not admitted: Redis takes no requests, or has not answered for too long. */
export interface Unwritable {
  readonly said: "unwritable";
}

export interface Waiting extends Waiter {
  readonly applicant: Applicant;
  readonly resolve: (admission: Admission | Unwritable) => void;
  readonly reject: (error: unknown) => void;
}

/** Somebody who waits until a call has made the earlier ones harmless. */
interface Overtaking {
  /** The last of the calls to be made harmless. */
  readonly number: number;
  /** When it is waited for no longer, on `performance.now()`'s clock. */
  readonly until: number;
  readonly resolve: () => void;
}

/** A record of calls at which Redis has lost what it had acknowledged. */
export interface LostCalls {
  readonly record: string;
  /** The last number that Redis had answered. */
  readonly acknowledged: number;
  /** The last number that it knows now. */
  readonly last: number;
}

export interface LineSettings {
  readonly redis: RedisClient;
  readonly terms: Terms;
  /** From `callsKey`. */
  readonly record: string;
  readonly onGoneBack: (lost: LostCalls) => void;
  /** Those who wait, also for calls of the other kind. */
  readonly turns: Turns<Waiting>;
  /** Which of them these calls bring. */
  readonly size: Size;
  /** Is called when there may be something to call for with the other kind. */
  readonly onFree: () => void;
  readonly world: World;
}

export class CallLine {
  readonly #settings: LineSettings;
  #number = 0;
  /** The last call that was answered, and when it was sent, on `performance.now()`'s clock. */
  #acknowledged = { number: 0, sentAt: -Infinity };
  #isCalling = false;
  /** Whether the last call was given up: it may be done yet, until a later one is answered. */
  #isGivenUp = false;
  /** Whether a call is to be made although no request waits. */
  #confirms = false;
  #overtaking: Overtaking[] = [];

  constructor(settings: LineSettings) {
    this.#settings = settings;
  }

  /**
   * Asks Redis whether it still knows of the last call, and so keeps it from forgetting. The answer
   * to any other call says it, too.
   */
  confirm(): void {
    if (this.#acknowledged.number === 0) return;
    this.#confirms = true;
    this.start();
  }

  /**
   * Makes all calls so far harmless, wherever copies of them still are: resolves when a later call
   * was answered, or when none was within the budget.
   */
  overtake(budgetMs: number): Promise<void> {
    if (this.#number === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#overtaking.push({ number: this.#number, until: this.#settings.world.now() + budgetMs, resolve });
      this.start();
    });
  }

  /** To be called when there may be something to call for. */
  start(): void {
    if (this.#isCalling) return;
    this.#isCalling = true;
    void this.#callWhileWanted();
  }

  async #callWhileWanted(): Promise<void> {
    let isWanted: boolean;
    do {
      // A call waits for what this turn of the event loop still brings: requests of other clients,
      // and those of the last call that come again, which go first.
      await this.#settings.world.turn();
      const requests = this.#next();
      isWanted = requests.length > 0 || this.#confirms || this.#overtaking.length > 0 || this.#holdsUp;
      if (isWanted && !(await this.#findsNoRoom(requests))) await this.#call(requests);
    } while (isWanted);
    this.#isCalling = false;
  }

  /** Takes the requests of the next call. Those that have waited for too long are sent away. */
  #next(): readonly Waiting[] {
    const { turns, size, onFree, world } = this.#settings;
    const now = world.now();
    const waitsMs = this.#isGivenUp ? WAITS_MS : { small: WAITS_FOR_CALLS_MS, large: WAITS_FOR_CALLS_MS };
    const overdue = turns.takeOverdue({ small: now - waitsMs.small, large: now - waitsMs.large });
    for (const { resolve } of overdue) resolve({ said: "unwritable" });
    const { call, frees } = turns.next(size, !this.#isGivenUp);
    if (frees || overdue.length > 0 || (call.length === 0 && !turns.isEmpty)) onFree();
    return call;
  }

  /** Whether somebody may wait for the end of a call that was given up. */
  get #holdsUp(): boolean {
    return this.#isGivenUp && !this.#settings.turns.isEmpty;
  }

  /**
   * Refuses a large request for which there is no room before Redis is sent its bytes, which would
   * hold up everybody else. One with an Idempotency-Key may be known, and is answered all the same.
   */
  async #findsNoRoom([request]: readonly Waiting[]): Promise<boolean> {
    const { redis, terms, size, world } = this.#settings;
    if (size === "small" || request === undefined || request.applicant.digest !== "") return false;
    try {
      const looking = limitInTheWay(redis, terms, request.applicant);
      const limit = (await within(PATIENCE_MS, looking, world)) ? await looking : undefined;
      if (limit === undefined) return false;
      request.resolve({ said: "queue-full", limit });
      return true;
    } catch {
      // The call itself meets the same, and says so.
      return false;
    }
  }

  async #call(requests: readonly Waiting[]): Promise<void> {
    this.#confirms = false;
    try {
      const admitted = await this.#bringToAnEnd(requests);
      for (const [i, { resolve, reject }] of requests.entries()) {
        const admission = admitted === "unwritable" ? { said: admitted } : admitted[i];
        if (admission === undefined) reject(new TypeError("a request's admission was not answered"));
        else resolve(admission);
      }
      // Redis has not begun a call that is refused as a whole.
      this.#isGivenUp &&= admitted === "unwritable";
      await this.#settleOvertaking(admitted !== "unwritable", requests.length === 0);
    } catch (error) {
      this.#isGivenUp = true;
      for (const { reject } of requests) reject(error);
      await this.#settleOvertaking(false, requests.length === 0);
    }
  }

  /**
   * @param answered whether the last call was
   * @param wasEmpty whether it brought nothing; then the next one is not made at once
   */
  async #settleOvertaking(answered: boolean, wasEmpty: boolean): Promise<void> {
    const { world } = this.#settings;
    const now = world.now();
    const isOver = ({ number, until }: Overtaking) => (answered && number < this.#number) || until < now;
    for (const one of this.#overtaking) if (isOver(one)) one.resolve();
    this.#overtaking = this.#overtaking.filter((one) => !isOver(one));
    if (!answered && wasEmpty) await delay(AGAIN_MS, undefined, world);
  }

  /** @throws the last error where the end of the call is not known */
  async #bringToAnEnd(requests: readonly Waiting[]): Promise<readonly Admission[] | "unwritable"> {
    const { redis, terms, record, onGoneBack, turns, world } = this.#settings;
    const applicants = requests.map(({ applicant }) => applicant);
    const number = ++this.#number;
    let copies = 0;
    const attempt = async (): Promise<readonly Admission[] | "unwritable"> => {
      copies++;
      try {
        for (;;) {
          const acknowledged = this.#surelyKnown();
          const sentAt = world.now();
          const admitted: Admitted = await admit(redis, terms, applicants, { record, number, acknowledged });
          if (admitted.said === "late") throw new TypeError("Redis knows a later call of this gateway");
          if (admitted.said === "answered") {
            this.#acknowledged = { number, sentAt };
            return admitted.admissions;
          }
          onGoneBack({ record, acknowledged, last: admitted.last });
          this.#acknowledged = { number: admitted.last, sentAt };
        }
      } catch (error) {
        // Redis stays full for longer than a client can wait, and asking again only takes its time.
        // Where the reply to an earlier copy was lost, the requests may have been admitted all the
        // same, so their clients may not be told that they were not.
        if (copies === 1 && refusesWrites(error)) return "unwritable";
        throw error;
      }
    };
    const now = world.now();
    const begun = requests.map((one) => (turns.mayWaitLong(one) ? now : one.since));
    const latest = requests.length === 0 ? now : Math.max(...begun);
    return retrying(attempt, { budgetMs: latest + BUDGET_MS - now, world });
  }

  /**
   * The last call that Redis cannot have forgotten by itself. A process that was frozen for long
   * takes part in no call, and its record expires.
   */
  #surelyKnown(): number {
    const { number, sentAt } = this.#acknowledged;
    return this.#settings.world.now() - sentAt < SURELY_KEPT_MS ? number : 0;
  }
}
