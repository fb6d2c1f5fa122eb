/** Keeps the streams wanted that somebody reads here: a worker ends one that nobody has wanted for the grace period. */
import type { Logger } from "pino";
import { encodeRequestId, type RequestAddress } from "#shared/contract/request-id.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { attend } from "../admission/attend.js";

export interface AttendanceSettings {
  readonly redis: RedisClient;
  /** How long a stream is wanted after its last reader was seen. */
  readonly graceMs: number;
  readonly log: Logger;
}

interface Attended {
  readonly address: RequestAddress;
  /** None for a moment after the last has left, until that is told. */
  readers: number;
  /** When it is said next that it is wanted, on `performance.now()`'s clock; endless where nobody needs to say it: it has ended, or runs in the background. */
  dueAt: number;
}

const TICK_MS = 250;

export class Attendance {
  readonly #settings: AttendanceSettings;
  /** By public id. */
  readonly #attended = new Map<string, Attended>();

  constructor(settings: AttendanceSettings) {
    this.#settings = settings;
  }

  /**
   * @param fresh the request was admitted just now, and is wanted for a while.
   * @returns call it when the reader leaves; `ended`: it has read the last record
   */
  arrive(address: RequestAddress, fresh: boolean): (ended: boolean) => void {
    const id = encodeRequestId(address);
    let attended = this.#attended.get(id);
    if (attended === undefined) {
      attended = { address, readers: 0, dueAt: fresh ? this.#nextDue() : 0 };
      this.#attended.set(id, attended);
      // The grace period of a reader that comes back may be nearly over.
      if (!fresh) void this.#attend(attended);
    }
    const one = attended;
    one.readers++;
    return (ended) => {
      one.readers--;
      if (one.readers > 0) return;
      if (ended || one.dueAt === Infinity) this.#attended.delete(id);
      // The grace period begins when the last reader leaves, not when it was told of last.
      else void this.#attend(one);
    };
  }

  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(TICK_MS, signal);
      const now = performance.now();
      const due = [...this.#attended.values()].filter(({ dueAt }) => now >= dueAt);
      await Promise.all(due.map((one) => this.#attend(one)));
    }
  }

  async #attend(one: Attended): Promise<void> {
    const { redis, graceMs, log } = this.#settings;
    one.dueAt = this.#nextDue();
    try {
      if ((await attend(redis, one.address, graceMs)) !== "attended") one.dueAt = Infinity;
    } catch (error) {
      one.dueAt = 0;
      log.debug({ error: String(error) }, "a reader's presence could not be told; tried again");
      return;
    }
    const id = encodeRequestId(one.address);
    if (one.readers === 0 && this.#attended.get(id) === one) this.#attended.delete(id);
  }

  #nextDue(): number {
    return performance.now() + this.#settings.graceMs / 3;
  }
}
