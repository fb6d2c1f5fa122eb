/**
 * Admission calls, one after the other. Requests that come while a call is under way wait for the
 * next call. So calls grow under load, and Redis admits requests of a tenant in order of arrival,
 * through any cut of the link. Each call has a number. The gateway repeats a call until Redis has
 * answered or the time is over; then the next number makes the call harmless.
 */
import {
  admit,
  CALLS_KEPT_MS,
  type Admission,
  type Applicant,
  type Admitted,
  type Terms,
} from "#shared/queue/admission/admit.js";
import { requestName } from "#shared/queue/address.js";
import { limitInTheWay } from "#shared/queue/admission/room.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay, refusesWrites, retrying, within } from "#shared/retry.js";
import { passed } from "#shared/stages.js";
import type { World } from "#shared/world.js";
import { countCall } from "./counts.js";
import type { Size, Turns, Waiter } from "./turns.js";

/**
 * How long the gateway repeats a call after the arrival of its requests, in ms. Then the clients
 * get an error that asks for a retry. For a request that may wait long, the time starts when the
 * call takes the request. The time bridges a restart of Redis.
 */
const BUDGET_MS = 2_000;

/** How long a request waits for its turn after the gateway gave a call up, in ms. */
const WAITS_MS = {
  small: BUDGET_MS,
  /** Also for a step behind a large step of its sequence. There may be many. */
  large: 5_000,
};

/**
 * How long each request waits while Redis answers, in ms. A call may take long on a slow disk, and
 * the next call brings all requests that have waited for it.
 */
const WAITS_FOR_CALLS_MS = 10_000;

/**
 * For this long after an answer, in ms, Redis surely has the record of the call, unless Redis has
 * lost data.
 */
const SURELY_KEPT_MS = CALLS_KEPT_MS / 2;

/** Longest wait of a call to hear whether there is room for a large request, in ms. */
const PATIENCE_MS = 250;

/** Pause before the repetition of an empty call without an answer, in ms. */
const AGAIN_MS = 200;

/**
 * The place of a request among the waiting requests. A request keeps its place when it has to come
 * again.
 */
export interface Place {
  /** Higher than the order of all earlier requests. */
  readonly order: number;
  /** Time of arrival, on `performance.now()`'s clock. */
  readonly since: number;
}

/** Redis did not admit the request: Redis takes no requests, or has not answered for too long. */
export interface Unwritable {
  readonly said: "unwritable";
}

export interface Waiting extends Waiter {
  readonly applicant: Applicant;
  readonly resolve: (admission: Admission | Unwritable) => void;
  readonly reject: (error: unknown) => void;
}

/** A caller that waits until a call has made the earlier calls harmless. */
interface Overtaking {
  /** The last of the calls to make harmless. */
  readonly number: number;
  /** When the caller waits no longer, on `performance.now()`'s clock. */
  readonly until: number;
  readonly resolve: () => void;
}

/** A record of calls from which Redis has lost calls that Redis had acknowledged. */
export interface LostCalls {
  readonly record: string;
  /** The last number that Redis had answered. */
  readonly acknowledged: number;
  /** The last number that Redis knows now. */
  readonly last: number;
}

export interface LineSettings {
  readonly redis: RedisClient;
  readonly terms: Terms;
  /** From `callsKey`. */
  readonly record: string;
  readonly onGoneBack: (lost: LostCalls) => void;
  /** The waiting requests, also for calls of the other kind. */
  readonly turns: Turns<Waiting>;
  /** The size of the requests that these calls bring. */
  readonly size: Size;
  /** The line calls this when the line of the other kind may have a reason for a call. */
  readonly onFree: () => void;
  readonly world: World;
}

export class CallLine {
  readonly #settings: LineSettings;
  #number = 0;
  /**
   * The last call that Redis answered, and when the gateway sent the call, on `performance.now()`'s
   * clock.
   */
  #acknowledged = { number: 0, sentAt: -Infinity };
  #isCalling = false;
  /**
   * Whether the gateway gave the last call up. Redis may still do that call until Redis answers a
   * later one.
   */
  #isGivenUp = false;
  /** Whether to make a call even if no request waits. */
  #confirms = false;
  #overtaking: Overtaking[] = [];

  constructor(settings: LineSettings) {
    this.#settings = settings;
  }

  /**
   * Asks Redis whether Redis still knows of the last call, which also keeps the record from
   * expiring. The answer to any other call says the same.
   */
  confirm(): void {
    if (this.#acknowledged.number === 0) return;
    this.#confirms = true;
    this.start();
  }

  /**
   * Makes all calls so far harmless, also copies that are still on their way. Resolves when Redis
   * has answered a later call, or when the budget is over.
   */
  overtake(budgetMs: number): Promise<void> {
    if (this.#number === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#overtaking.push({ number: this.#number, until: this.#settings.world.now() + budgetMs, resolve });
      this.start();
    });
  }

  /** To be called when there may be a reason for a call. */
  start(): void {
    if (this.#isCalling) return;
    this.#isCalling = true;
    void this.#callWhileWanted();
  }

  async #callWhileWanted(): Promise<void> {
    let isWanted: boolean;
    do {
      // A call waits for the rest of this turn of the event loop. That may bring requests of other
      // clients, and requests of the last call that come again, which go first.
      await this.#settings.world.turn();
      const requests = this.#next();
      isWanted = requests.length > 0 || this.#confirms || this.#overtaking.length > 0 || this.#holdsUp;
      if (isWanted && !(await this.#findsNoRoom(requests))) await this.#call(requests);
    } while (isWanted);
    this.#isCalling = false;
  }

  /** Takes the requests of the next call. Refuses requests that have waited for too long. */
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

  /** Whether a request may wait for the end of a call that the gateway gave up. */
  get #holdsUp(): boolean {
    return this.#isGivenUp && !this.#settings.turns.isEmpty;
  }

  /**
   * Refuses a large request without room before Redis gets its bytes, which would hold up all other
   * requests. A request with an Idempotency-Key is exempt, because Redis may know its outcome.
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
      // The call itself meets the same error, and reports it.
      return false;
    }
  }

  async #call(requests: readonly Waiting[]): Promise<void> {
    this.#confirms = false;
    const { world } = this.#settings;
    const since = world.now();
    try {
      const admitted = await this.#bringToAnEnd(requests).finally(() => {
        if (requests.length > 0) countCall(requests.length, world.now() - since);
      });
      for (const [i, { resolve, reject }] of requests.entries()) {
        const admission = admitted === "unwritable" ? { said: admitted } : admitted[i];
        if (admission === undefined) reject(new TypeError("a request's admission was not answered"));
        else resolve(admission);
      }
      // A call that Redis refuses as a whole has admitted nothing.
      this.#isGivenUp &&= admitted === "unwritable";
      await this.#settleOvertaking(admitted !== "unwritable", requests.length === 0);
    } catch (error) {
      this.#isGivenUp = true;
      for (const { reject } of requests) reject(error);
      await this.#settleOvertaking(false, requests.length === 0);
    }
  }

  /**
   * @param answered whether Redis answered the last call
   * @param wasEmpty whether that call brought no request; if it failed, the next call waits for a
   * pause
   */
  async #settleOvertaking(answered: boolean, wasEmpty: boolean): Promise<void> {
    const { world } = this.#settings;
    const now = world.now();
    const isOver = ({ number, until }: Overtaking) => (answered && number < this.#number) || until < now;
    for (const one of this.#overtaking) if (isOver(one)) one.resolve();
    this.#overtaking = this.#overtaking.filter((one) => !isOver(one));
    if (!answered && wasEmpty) await delay(AGAIN_MS, undefined, world);
  }

  /** @throws the last error if the end of the call is not known */
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
          passed("called", applicants, requestName);
          for (const { called } of applicants) called?.(applicants.length);
          const admitted: Admitted = await admit(redis, terms, applicants, { record, number, acknowledged });
          if (admitted.said === "late") throw new TypeError("Redis knows a later call of this gateway");
          if (admitted.said === "answered") {
            passed("admitted", applicants, requestName);
            this.#acknowledged = { number, sentAt };
            return admitted.admissions;
          }
          onGoneBack({ record, acknowledged, last: admitted.last });
          this.#acknowledged = { number: admitted.last, sentAt };
        }
      } catch (error) {
        // Redis stays full for longer than a client can wait, and another try only takes time of
        // Redis. If the reply to an earlier copy got lost, Redis may have admitted the requests.
        // A refusal would then be false.
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
