/**
 * The requests whose outcome this gateway waits for. NATS usually brings it; when it is silent, or down, Redis is asked: the outcome is committed there before
 * anything is published, so a lost message costs time and never an answer.
 */
import type { Logger } from "pino";
import { readOutcome, storeOutcome, outcomeOf, type Outcome } from "#shared/contract/outcome.js";
import { decodeReplies } from "#shared/contract/reply.js";
import { InferenceError } from "#shared/errors.js";
import type { Bus } from "#shared/nats/connect.js";
import { dropIfSilent, type RedisClient } from "#shared/redis/connect.js";
import { giveOutcome } from "#shared/queue/give-outcome.js";
import { delay } from "#shared/retry.js";

interface Pending {
  readonly key: string;
  readonly outcomeTtlMs: number;
  readonly deadlineAt: number;
  /** Usually one; more when a client retries under its key while the first try still waits here. */
  readonly waiters: Set<(outcome: Outcome) => void>;
  /** From then on Redis has a record of the request; should it be gone, so is the request. */
  admitted: boolean;
  /** When Redis is asked next; moved on by every look. */
  lookAt: number;
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
/** With NATS down there is no fast path, and Redis is asked often. */
const POLL_MS = 25;
/** How long past its deadline a request may stay unanswered while Redis cannot be asked. */
const GRACE_MS = 5_000;
const LOOKS_AT_ONCE = 500;

export class PendingRequests {
  readonly #pending = new Map<string, Pending>();
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
      pending = {
        key,
        outcomeTtlMs,
        deadlineAt: now + deadlineMs,
        waiters: new Set(),
        admitted: false,
        lookAt: now + SILENCE_MS,
      };
      this.#pending.set(request, pending);
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
      if (waiters.size === 0 && this.#pending.get(request)?.waiters === waiters) this.#pending.delete(request);
    };
    return { outcome, admitted, forget };
  }

  /** Another gateway may be the one that hears of this request: only Redis will tell. */
  lookSoon(request: string): void {
    const pending = this.#pending.get(request);
    if (pending !== undefined) pending.lookAt = 0;
  }

  /** One message from a worker. */
  receive(message: Buffer): void {
    try {
      for (const { request, kind, body } of decodeReplies(message)) {
        if (kind === "look") this.lookSoon(request);
        else this.#settle(request, readOutcome(kind, body));
      }
    } catch (error) {
      this.#log.warn({ error: String(error) }, "unreadable reply ignored; Redis has the outcome");
    }
  }

  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(POLL_MS, signal);
      const now = performance.now();
      const silence = this.#bus.isUp() ? SILENCE_MS : POLL_MS;
      const due = [...this.#pending].filter(([, pending]) => now >= Math.min(pending.lookAt, pending.deadlineAt));
      const batch = due.slice(0, LOOKS_AT_ONCE);
      for (const [, pending] of batch) pending.lookAt = now + silence;
      if (!this.#bus.isUp())
        for (const pending of this.#pending.values()) pending.lookAt = Math.min(pending.lookAt, now + POLL_MS);
      await this.#look(batch, now);
    }
  }

  async #look(batch: readonly [string, Pending][], now: number): Promise<void> {
    await Promise.all(
      batch.map(async ([request, { key, outcomeTtlMs, deadlineAt, admitted }]) => {
        try {
          if (now >= deadlineAt) {
            const ended = await this.#expire(key, outcomeTtlMs);
            if (ended !== undefined) return this.#settle(request, ended);
            if (now >= deadlineAt + GRACE_MS) this.#settle(request, unknownOutcome());
            return;
          }
          const [digest, kind, body] = await this.#redis.hmgetBuffer(key, "digest", "kind", "body");
          if (kind && body) this.#settle(request, readOutcome(kind.toString(), body));
          else if (!digest && admitted) this.#settle(request, lostRequest());
        } catch (error) {
          dropIfSilent(this.#redis, error);
          if (now >= deadlineAt + GRACE_MS) this.#settle(request, unknownOutcome());
        }
      }),
    );
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

  #settle(request: string, outcome: Outcome): void {
    const pending = this.#pending.get(request);
    this.#pending.delete(request);
    for (const resolve of pending?.waiters ?? []) resolve(outcome);
  }
}

/** Redis has lost the record of a request that it had accepted: it came back empty, or somebody deleted it. */
function lostRequest(): Outcome {
  return outcomeOf(new InferenceError("request_lost", "the accepted request is gone from the queue"));
}

function unknownOutcome(): Outcome {
  return outcomeOf(new InferenceError("outcome_unknown", "the request's outcome cannot be read now"));
}
