/**
 * The generations that this gateway has admitted. One that has no token when its deadline passes is
 * ended, wherever it is by then; one that has a token goes on to its end, or for as long as its
 * client gave the whole answer. Redis says which it is: this gateway may not have heard of the
 * token yet.
 */
import { expiredMessages } from "#shared/contract/generation.js";
import type { Logger } from "pino";
import { encodeRequestId, type RequestAddress } from "#shared/contract/request-id.js";
import type { Bus } from "#shared/nats/connect.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { endRequest } from "./end.js";

export interface DeadlineSettings {
  readonly redis: RedisClient;
  readonly bus: Bus;
  readonly log: Logger;
}

interface Deadline {
  readonly address: RequestAddress;
  /** What must be there by then. */
  readonly of: "first token" | "whole answer";
  /** On `performance.now()`'s clock. */
  readonly dueAt: number;
  /** How long after this one the deadline of the whole answer is; undefined: there is none. */
  readonly restMs: number | undefined;
  readonly ttlMs: number;
}

const TICK_MS = 100;
/** How long past a deadline Redis is asked; then the worker alone is left to notice. */
const GIVE_UP_MS = 60_000;

export class Deadlines {
  readonly #settings: DeadlineSettings;
  /** By public id. */
  readonly #deadlines = new Map<string, Deadline>();

  constructor(settings: DeadlineSettings) {
    this.#settings = settings;
  }

  /**
   * @param restMs how long after the deadline of its first token that of the whole answer is;
   * undefined: there is none
   * @param ttlMs how long the outcome is kept.
   */
  expect(address: RequestAddress, deadlineMs: number, restMs: number | undefined, ttlMs: number): void {
    const dueAt = performance.now() + deadlineMs;
    this.#deadlines.set(encodeRequestId(address), { address, of: "first token", dueAt, restMs, ttlMs });
  }

  /** It has ended. */
  forget(address: RequestAddress): void {
    this.#deadlines.delete(encodeRequestId(address));
  }

  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(TICK_MS, signal);
      const now = performance.now();
      const due = [...this.#deadlines].filter(([, { dueAt }]) => now >= dueAt);
      await Promise.all(due.map(([id, deadline]) => this.#expire(id, deadline, now)));
    }
  }

  async #expire(id: string, deadline: Deadline, now: number): Promise<void> {
    const { address, of, dueAt, restMs, ttlMs } = deadline;
    const unlessBegun = of === "first token";
    const message = unlessBegun ? expiredMessages.beforeFirstToken : expiredMessages.beforeEnd;
    try {
      const { said } = await endRequest(this.#settings, address, {
        code: "expired",
        message,
        ttlMs,
        stream: true,
        unlessBegun,
      });
      if (said === "begun" && restMs !== undefined && this.#deadlines.has(id)) {
        const rest = { address, of: "whole answer", dueAt: dueAt + restMs, restMs: undefined, ttlMs } as const;
        this.#deadlines.set(id, rest);
        return;
      }
    } catch (error) {
      if (now - dueAt < GIVE_UP_MS) return;
      this.#settings.log.warn({ error: String(error) }, "a request past its deadline could not be ended");
    }
    this.#deadlines.delete(id);
  }
}
