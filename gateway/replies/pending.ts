/**
 * The requests whose outcome this gateway waits for. NATS usually brings it; when it is silent, or down, Redis is asked: the outcome is committed there before
 * anything is published, so a lost message costs time and never an answer.
 */
import type { Logger } from "pino";
import { chunks } from "#shared/chunks.js";
import { readOutcome, storeOutcome, outcomeOf, type Outcome } from "#shared/contract/outcome.js";
import { decodeReplies } from "#shared/contract/reply.js";
import { InferenceError } from "#shared/errors.js";
import type { Bus } from "#shared/nats/connect.js";
import { dropIfSilent, type RedisClient } from "#shared/redis/connect.js";
import { giveOutcome } from "#shared/queue/give-outcome.js";
import { delay } from "#shared/retry.js";
import { Agenda } from "./agenda.js";

interface Pending {
  readonly request: string;
  readonly key: string;
  readonly outcomeTtlMs: number;
  readonly openedAt: number;
  readonly deadlineAt: number;
  /** Usually one; more when a client retries under its key while the first try still waits here. */
  readonly waiters: Set<(outcome: Outcome) => void>;
  /** From then on Redis has a record of the request; should it be gone, so is the request. */
  admitted: boolean;
}

export interface Wait {
  readonly request: string;
  /** Redis key of the outcome. */
  readonly key: string;
  readonly outcomeTtlMs: number;
  readonly deadlineMs: number;
}

export interface Expected {
  readonly outcome: Promise<Outcome>;
  /** Redis has the request. */
  readonly admitted: () => void;
  /** The request was refused, or its outcome was known at once. */
  readonly forget: () => void;
}

/** Longest silence of NATS before Redis is asked: a message lost after the commit is noticed within this. */
const SILENCE_MS = 500;
/** How often what is due is looked for. */
const TICK_MS = 25;
/**
 * With NATS down there is no fast path, and Redis is asked often: after a tenth of the time that a
 * request has been open. So its answer is a tenth later at most, and a long wait costs little.
 */
const POLL = { least: TICK_MS, share: 0.1, most: 250 };
/** How long past its deadline a request may stay unanswered while Redis cannot be asked. */
const GRACE_MS = 5_000;
/** Sent together. Between two such groups the event loop serves everybody else. */
const LOOKS_AT_ONCE = 256;
/** Outcomes may be large: no more than these are read together. */
const BODIES_AT_ONCE = 16;

export class PendingRequests {
  readonly #pending = new Map<string, Pending>();
  /** When Redis is asked about each next. */
  readonly #looks = new Agenda<Pending>(performance.now());
  readonly #deadlines = new Agenda<Pending>(performance.now());
  #busWasUp = false;
  readonly #redis: RedisClient;
  readonly #bus: Bus;
  readonly #log: Logger;

  constructor(redis: RedisClient, bus: Bus, log: Logger) {
    this.#redis = redis;
    this.#bus = bus;
    this.#log = log;
  }

  get size(): number {
    return this.#pending.size;
  }

  /** Begin before the request is admitted: its outcome may come before the admission's own reply does. */
  expect({ request, key, outcomeTtlMs, deadlineMs }: Wait): Expected {
    const now = performance.now();
    let pending = this.#pending.get(request);
    if (pending === undefined) {
      const deadlineAt = now + deadlineMs;
      pending = { request, key, outcomeTtlMs, openedAt: now, deadlineAt, waiters: new Set(), admitted: false };
      this.#pending.set(request, pending);
      this.#deadlines.set(pending, deadlineAt);
      this.#lookLater(pending, now);
    }
    const { waiters } = pending;
    const record = pending;
    const admitted = () => {
      record.admitted = true;
    };
    let waiter: ((outcome: Outcome) => void) | undefined;
    const outcome = new Promise<Outcome>((resolve) => {
      waiter = resolve;
      waiters.add(resolve);
    });
    const forget = () => {
      if (waiter !== undefined) waiters.delete(waiter);
      if (waiters.size === 0) this.#drop(record);
    };
    return { outcome, admitted, forget };
  }

  /** Another gateway may be the one that hears of this request: only Redis will tell. */
  lookSoon(request: string): void {
    const pending = this.#pending.get(request);
    if (pending !== undefined) this.#looks.set(pending, 0);
  }

  /** One message from a worker. */
  receive(message: Buffer): void {
    try {
      for (const { request, kind, body } of decodeReplies(message)) {
        const pending = this.#pending.get(request);
        if (pending === undefined) continue;
        if (kind === "look") this.#looks.set(pending, 0);
        else this.#settle(pending, readOutcome(kind, body));
      }
    } catch (error) {
      this.#log.warn({ error: String(error) }, "unreadable reply ignored; Redis has the outcome");
    }
  }

  async watch(signal: AbortSignal): Promise<void> {
    // Apart from each other: however many looks there are, deadlines do not wait for them.
    await Promise.all([this.#lookWhileOpen(signal), this.#expireWhileOpen(signal)]);
  }

  async #lookWhileOpen(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(TICK_MS, signal);
      this.#heedBus();
      const now = performance.now();
      for (const group of groups(this.#looks.takeDue(now), LOOKS_AT_ONCE)) {
        if (signal.aborted) return;
        await this.#look(group, now);
      }
    }
  }

  async #expireWhileOpen(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(TICK_MS, signal);
      for (const group of groups(this.#deadlines.takeDue(performance.now()), LOOKS_AT_ONCE)) {
        if (signal.aborted) return;
        await Promise.all(group.map((pending) => this.#end(pending)));
      }
    }
  }

  /** Whoever relied on NATS is looked for at once when it goes down. */
  #heedBus(): void {
    const isUp = this.#bus.isUp();
    if (this.#busWasUp && !isUp) for (const pending of this.#pending.values()) this.#looks.set(pending, 0);
    this.#busWasUp = isUp;
  }

  #lookLater(pending: Pending, now: number): void {
    const pollMs = Math.min(Math.max(POLL.least, (now - pending.openedAt) * POLL.share), POLL.most);
    this.#looks.set(pending, now + (this.#bus.isUp() ? SILENCE_MS : pollMs));
  }

  /** @param now when the round of looks began: who was due together is so again. */
  async #look(group: readonly Pending[], now: number): Promise<void> {
    const open = group.filter((pending) => this.#isOpen(pending));
    const ended = await Promise.all(open.map((pending) => this.#hasEnded(pending)));
    const withOutcome = open.filter((_, i) => ended[i]);
    for (const few of groups(withOutcome, BODIES_AT_ONCE)) await Promise.all(few.map((one) => this.#fetch(one)));
    for (const pending of open) {
      // A worker may have asked for another look while this one was on its way.
      if (this.#isOpen(pending) && !this.#looks.has(pending)) this.#lookLater(pending, now);
    }
  }

  /** Whether Redis has an outcome. It may be large, so it is fetched only once it is there. */
  async #hasEnded(pending: Pending): Promise<boolean> {
    // Noted before Redis is asked: the reply says nothing of a request that is admitted meanwhile.
    const { admitted } = pending;
    try {
      const [digest, kind] = await this.#redis.hmget(pending.key, "digest", "kind");
      if (digest === null && admitted) this.#settle(pending, lostRequest());
      return typeof kind === "string";
    } catch (error) {
      dropIfSilent(this.#redis, error);
      return false;
    }
  }

  async #fetch(pending: Pending): Promise<void> {
    try {
      const [kind, body] = await this.#redis.hmgetBuffer(pending.key, "kind", "body");
      if (kind && body) this.#settle(pending, readOutcome(kind.toString(), body));
    } catch (error) {
      dropIfSilent(this.#redis, error);
    }
  }

  /** Its deadline has passed. */
  async #end(pending: Pending): Promise<void> {
    this.#looks.delete(pending);
    const isTooLate = performance.now() >= pending.deadlineAt + GRACE_MS;
    try {
      const ended = await this.#expire(pending.key, pending.outcomeTtlMs);
      if (ended !== undefined) this.#settle(pending, ended);
    } catch (error) {
      dropIfSilent(this.#redis, error);
    }
    if (!this.#isOpen(pending)) return;
    if (isTooLate) this.#settle(pending, unknownOutcome());
    else this.#deadlines.set(pending, performance.now() + TICK_MS);
  }

  /**
   * The deadline passed: end the request in Redis, unless it has ended there meanwhile, so that it has one outcome whoever asks.
   * @returns undefined while the outcome is certain but not yet committed: past its deadline a request is looked at again at once.
   */
  async #expire(key: string, outcomeTtlMs: number): Promise<Outcome | undefined> {
    const expired = outcomeOf(new InferenceError("expired", "Request timeout expired"));
    const { kind, body } = storeOutcome(expired);
    const given = await giveOutcome(this.#redis, [key], [kind, body, outcomeTtlMs]);
    if (given.said === "sealed") return undefined;
    return given.said === "known" ? readOutcome(given.outcome.kind, given.outcome.body) : expired;
  }

  #isOpen(pending: Pending): boolean {
    return this.#pending.get(pending.request) === pending;
  }

  #drop(pending: Pending): void {
    if (this.#isOpen(pending)) this.#pending.delete(pending.request);
    this.#looks.delete(pending);
    this.#deadlines.delete(pending);
  }

  #settle(pending: Pending, outcome: Outcome): void {
    this.#drop(pending);
    for (const resolve of pending.waiters) resolve(outcome);
  }
}

function groups<Item>(items: readonly Item[], size: number): Item[][] {
  return chunks(items, () => 0, { bytes: 0, items: size });
}

/** Redis has lost the record of a request that it had accepted: it came back empty, or somebody deleted it. */
function lostRequest(): Outcome {
  return outcomeOf(new InferenceError("request_lost", "the accepted request is gone from the queue"));
}

function unknownOutcome(): Outcome {
  return outcomeOf(new InferenceError("outcome_unknown", "the request's outcome cannot be read now"));
}
