/**
 * Counts the readers of every stream at this gateway, and tells Redis again and again which streams
 * have readers: a worker ends a stream that no gateway has named for the grace period.
 */
import type { Logger } from "pino";
import { addressText, type RequestAddress } from "#shared/queue/address.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { attend } from "#shared/queue/admission/attend.js";

export interface ReadersSettings {
  readonly redis: RedisClient;
  /** How long a stream runs on without a reader, in ms. */
  readonly graceMs: number;
  readonly log: Logger;
}

interface ReadStream {
  readonly address: RequestAddress;
  /** 0 for a moment after the last reader has left, until the gateway has told Redis. */
  readers: number;
  /**
   * When the gateway next tells Redis that the stream has readers, in ms on `performance.now()`'s
   * clock. Infinity if Redis need not know, because the stream has ended or runs in the background.
   */
  dueAt: number;
}

/** How often the gateway checks whether Redis has to hear of a stream, in ms. */
const TICK_MS = 250;

export class Readers {
  readonly #settings: ReadersSettings;
  /** By address. */
  readonly #streams = new Map<string, ReadStream>();

  constructor(settings: ReadersSettings) {
    this.#settings = settings;
  }

  /**
   * A reader begins.
   * @param fresh whether the request was admitted just now, so that its grace period has just begun
   * @returns a function to call when the reader leaves; `ended` says whether it has read the last
   * record
   */
  join(address: RequestAddress, fresh: boolean): (ended: boolean) => void {
    const id = addressText(address);
    let stream = this.#streams.get(id);
    if (stream === undefined) {
      stream = { address, readers: 0, dueAt: fresh ? this.#nextDue() : 0 };
      this.#streams.set(id, stream);
      // A reader that comes back may do so when the grace period is nearly over.
      if (!fresh) void this.#attend(stream);
    }
    const one = stream;
    one.readers++;
    return (ended) => {
      one.readers--;
      if (one.readers > 0) return;
      if (ended || one.dueAt === Infinity) this.#streams.delete(id);
      // The grace period begins when the last reader leaves, not with the last message to Redis.
      else void this.#attend(one);
    };
  }

  /** A client has read some of the stream, and is likely to come again. */
  visit(address: RequestAddress): void {
    if (!this.#streams.has(addressText(address))) void this.#attend({ address, readers: 0, dueAt: 0 });
  }

  /** Tells Redis again and again, until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(TICK_MS, signal);
      const now = performance.now();
      const due = [...this.#streams.values()].filter(({ dueAt }) => now >= dueAt);
      await Promise.all(due.map((one) => this.#attend(one)));
    }
  }

  /** Tells Redis that the stream has a reader, from now on for the grace period. */
  async #attend(one: ReadStream): Promise<void> {
    const { redis, graceMs, log } = this.#settings;
    one.dueAt = this.#nextDue();
    try {
      if ((await attend(redis, one.address, graceMs)) !== "attended") one.dueAt = Infinity;
    } catch (error) {
      one.dueAt = 0;
      log.debug({ error: String(error) }, "a reader's presence could not be told; tried again");
      return;
    }
    const id = addressText(one.address);
    if (one.readers === 0 && this.#streams.get(id) === one) this.#streams.delete(id);
  }

  /** Two messages may get lost or be late before the grace period is over. */
  #nextDue(): number {
    return performance.now() + this.#settings.graceMs / 3;
  }
}
