/**
 * Keeps the deadlines of the generations that this gateway has admitted. If a generation has no
 * token when its deadline passes, the gateway ends the generation, in the queue or at a worker. A
 * generation with a token runs to the end, or until the deadline of the whole answer if the client
 * gave one. Redis says whether there is a token, because this gateway may not have received the
 * token yet.
 */
import type { Logger } from "pino";
import { errorKinds } from "#shared/errors.js";
import { addressText, type RequestAddress } from "#shared/queue/address.js";
import type { Bus } from "#shared/nats/connect.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { endRequest, type EndedRequest } from "./end-request.js";

export interface DeadlineSettings {
  readonly redis: RedisClient;
  readonly bus: Bus;
  readonly log: Logger;
}

/** The terms of an admitted request. */
export interface DeadlineTerms {
  /** How long from now on its first token may take, in ms. */
  readonly deadlineMs: number;
  /**
   * The whole answer is due this many ms after that deadline; undefined if there is no such
   * deadline.
   */
  readonly restMs: number | undefined;
  /** How long Redis keeps the outcome, in ms. */
  readonly ttlMs: number;
}

interface Deadline extends Omit<DeadlineTerms, "deadlineMs"> {
  readonly address: RequestAddress;
  /** The result that must be there when the deadline passes. */
  readonly kind: "first token" | "whole answer";
  /** In ms on `performance.now()`'s clock. */
  readonly dueAt: number;
}

/** How often the gateway looks for due deadlines, in ms, and so how late it notices one at most. */
const TICK_MS = 100;
/**
 * The gateway asks Redis for this long past a deadline, in ms. After that only the worker can still
 * end the request.
 */
const GIVE_UP_MS = 60_000;

export class Deadlines {
  readonly #settings: DeadlineSettings;
  /** By address. */
  readonly #deadlines = new Map<string, Deadline>();

  constructor(settings: DeadlineSettings) {
    this.#settings = settings;
  }

  /** Adds an admitted request. */
  add(address: RequestAddress, { deadlineMs, restMs, ttlMs }: DeadlineTerms): void {
    const dueAt = performance.now() + deadlineMs;
    this.#deadlines.set(addressText(address), { address, kind: "first token", dueAt, restMs, ttlMs });
  }

  /** Removes a request that has ended. */
  remove(address: RequestAddress): void {
    this.#deadlines.delete(addressText(address));
  }

  /** Ends overdue requests until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(TICK_MS, signal);
      const now = performance.now();
      const due = [...this.#deadlines].filter(([, { dueAt }]) => now >= dueAt);
      await Promise.all(due.map(([key, deadline]) => this.#expire(key, deadline, now)));
    }
  }

  async #expire(key: string, deadline: Deadline, now: number): Promise<void> {
    const { address, kind, dueAt, restMs, ttlMs } = deadline;
    const unlessBegun = kind === "first token";
    const { texts } = errorKinds.expired;
    const message = unlessBegun ? texts.beforeResult : texts.beforeEnd;
    try {
      const ending = { code: "expired", message, ttlMs, stream: true, unlessBegun } as const;
      const counted = ({ wasQueued, ends, ms }: EndedRequest) =>
        ends.expired(!unlessBegun ? "stream" : wasQueued ? "queue" : "run", ms);
      const { said } = await endRequest(this.#settings, address, ending, { counted });
      if (said === "begun" && restMs !== undefined && this.#deadlines.has(key)) {
        const rest = { address, kind: "whole answer", dueAt: dueAt + restMs, restMs: undefined, ttlMs } as const;
        this.#deadlines.set(key, rest);
        return;
      }
    } catch (error) {
      if (now - dueAt < GIVE_UP_MS) return;
      this.#settings.log.warn({ error: String(error) }, "a request past its deadline could not be ended");
    }
    this.#deadlines.delete(key);
  }
}
