/**
 * Requests that wait for their admission call, and the calls, one after the other. While a call is
 * under way, what comes waits for the next one: so under load calls grow, and requests are admitted
 * in the order in which they came, through any cut of the link. A call is numbered, and repeated
 * until its end is known or its time is over; then the next number makes it harmless.
 */
import { setImmediate } from "node:timers/promises";
import { chunks } from "#shared/chunks.js";
import {
  admit,
  CALLS_KEPT_MS,
  type Admission,
  type Applicant,
  type Admitted,
  type Terms,
} from "#shared/queue/admission/admit.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay, refusesWrites, retrying } from "#shared/retry.js";

/** What one call admits at most: a longer one would hold up the heartbeats of all workers. */
const LIMITS = { bytes: 1_048_576, items: 64 };

/**
 * How long after it came the call of a request is still repeated, in ms, before its client is told
 * to retry. It bridges a restart of Redis.
 */
const BUDGET_MS = 2_000;

/**
 * For so long after a call was answered, in ms, its record is surely there, unless Redis has lost
 * it.
 */
const SURELY_KEPT_MS = CALLS_KEPT_MS / 2;

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

interface Waiting {
  readonly applicant: Applicant;
  readonly place: Place;
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
}

export class CallLine {
  readonly #settings: LineSettings;
  /** In the order of their places. */
  readonly #waiting: Waiting[] = [];
  #number = 0;
  /** The last call that was answered, and when it was sent, on `performance.now()`'s clock. */
  #acknowledged = { number: 0, sentAt: -Infinity };
  #isCalling = false;
  /** Whether a call is to be made although no request waits. */
  #confirms = false;
  #overtaking: Overtaking[] = [];

  constructor(settings: LineSettings) {
    this.#settings = settings;
  }

  /** @throws the Redis client's error where it is not known whether the request was admitted */
  admit(applicant: Applicant, place: Place): Promise<Admission | Unwritable> {
    return new Promise((resolve, reject) => {
      const after = this.#waiting.findLastIndex((other) => other.place.order < place.order);
      this.#waiting.splice(after + 1, 0, { applicant, place, resolve, reject });
      this.#start();
    });
  }

  /**
   * Asks Redis whether it still knows of the last call, and so keeps it from forgetting. The answer
   * to any other call says it, too.
   */
  confirm(): void {
    if (this.#acknowledged.number === 0) return;
    this.#confirms = true;
    this.#start();
  }

  /**
   * Makes all calls so far harmless, wherever copies of them still are: resolves when a later call
   * was answered, or when none was within the budget.
   */
  overtake(budgetMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#overtaking.push({ number: this.#number, until: performance.now() + budgetMs, resolve });
      this.#start();
    });
  }

  #start(): void {
    if (this.#isCalling) return;
    this.#isCalling = true;
    void this.#callWhileWanted();
  }

  async #callWhileWanted(): Promise<void> {
    do {
      // A call waits for what this turn of the event loop still brings: requests of other clients,
      // and those of the last call that come again, which go first.
      await setImmediate();
      await this.#call(this.#next());
    } while (this.#waiting.length > 0 || this.#confirms || this.#overtaking.length > 0);
    this.#isCalling = false;
  }

  /** Takes the requests of the next call. Those that have waited for too long are sent away. */
  #next(): Waiting[] {
    this.#confirms = false;
    const oldest = performance.now() - BUDGET_MS;
    const fresh = this.#waiting.findIndex(({ place }) => place.since >= oldest);
    const overdue = this.#waiting.splice(0, fresh === -1 ? this.#waiting.length : fresh);
    for (const { resolve } of overdue) resolve({ said: "unwritable" });
    const first = this.#waiting.slice(0, LIMITS.items);
    const [call = []] = chunks(first, ({ applicant }) => applicant.frame.length, LIMITS);
    return this.#waiting.splice(0, call.length);
  }

  async #call(requests: readonly Waiting[]): Promise<void> {
    try {
      const admitted = await this.#bringToAnEnd(requests);
      for (const [i, { resolve, reject }] of requests.entries()) {
        const admission = admitted === "unwritable" ? { said: admitted } : admitted[i];
        if (admission === undefined) reject(new TypeError("a request's admission was not answered"));
        else resolve(admission);
      }
      await this.#settleOvertaking(admitted !== "unwritable");
    } catch (error) {
      for (const { reject } of requests) reject(error);
      await this.#settleOvertaking(false);
    }
  }

  /** @param answered whether the last call was */
  async #settleOvertaking(answered: boolean): Promise<void> {
    const now = performance.now();
    const isOver = ({ number, until }: Overtaking) => (answered && number < this.#number) || until < now;
    for (const one of this.#overtaking) if (isOver(one)) one.resolve();
    this.#overtaking = this.#overtaking.filter((one) => !isOver(one));
    if (!answered && this.#overtaking.length > 0 && this.#waiting.length === 0) await delay(AGAIN_MS);
  }

  /** @throws the last error where the end of the call is not known */
  async #bringToAnEnd(requests: readonly Waiting[]): Promise<readonly Admission[] | "unwritable"> {
    const { redis, terms, record, onGoneBack } = this.#settings;
    const applicants = requests.map(({ applicant }) => applicant);
    const number = ++this.#number;
    let copies = 0;
    const attempt = async (): Promise<readonly Admission[] | "unwritable"> => {
      copies++;
      try {
        for (;;) {
          const acknowledged = this.#surelyKnown();
          const sentAt = performance.now();
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
    const youngest = requests.at(-1)?.place.since ?? performance.now();
    return retrying(attempt, { budgetMs: youngest + BUDGET_MS - performance.now() });
  }

  /**
   * The last call that Redis cannot have forgotten by itself. A process that was frozen for long
   * takes part in no call, and its record expires.
   */
  #surelyKnown(): number {
    const { number, sentAt } = this.#acknowledged;
    return performance.now() - sentAt < SURELY_KEPT_MS ? number : 0;
  }
}
