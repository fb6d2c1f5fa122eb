/** The generations that this gateway has admitted: each is ended when its deadline passes, wherever it is by then. */
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
  /** On `performance.now()`'s clock. */
  readonly dueAt: number;
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

  /** @param ttlMs how long the outcome is kept. */
  expect(address: RequestAddress, deadlineMs: number, ttlMs: number): void {
    this.#deadlines.set(encodeRequestId(address), { address, dueAt: performance.now() + deadlineMs, ttlMs });
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

  async #expire(id: string, { address, ttlMs, dueAt }: Deadline, now: number): Promise<void> {
    const ending = { code: "expired", message: "Request timeout expired", ttlMs, stream: true } as const;
    try {
      await endRequest(this.#settings, address, ending);
    } catch (error) {
      if (now - dueAt < GIVE_UP_MS) return;
      this.#settings.log.warn({ error: String(error) }, "a request past its deadline could not be ended");
    }
    this.#deadlines.delete(id);
  }
}
