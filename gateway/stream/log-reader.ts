/**
 * Reads the logs of streams. The reads of one turn of the event loop go to Redis together, because
 * an iteration of a batch wakes all of its streams at once, and a restart all of their readers.
 */
import { fixedError } from "#shared/errors.js";
import { isTransient, retrying, type RetryPolicy } from "#shared/retry.js";
import { addressText, type RequestAddress } from "#shared/queue/address.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { readLogs, type Page } from "#shared/queue/admission/read-logs.js";

/**
 * Most logs for one script call to read, because the script holds up the commits of all workers.
 */
const READS_PER_CALL = 32;

/** A read that a caller asked for in this turn of the event loop. */
interface Wanted extends RequestAddress {
  /** Index of the first record wanted. */
  readonly from: number;
  readonly page: Promise<Page>;
  readonly resolve: (page: Page) => void;
  readonly reject: (error: unknown) => void;
}

export class LogReader {
  readonly #redis: RedisClient;
  /** Reads of this turn by request and index, because readers of the same index share a read. */
  #wanted = new Map<string, Wanted>();

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /**
   * Reads a page of the log from index `from` on.
   * @throws the Redis client's error while the gateway cannot ask Redis
   */
  read(address: RequestAddress, from: number): Promise<Page> {
    if (this.#wanted.size === 0) setImmediate(() => this.#send());
    const name = `${addressText(address)}:${from}`;
    const same = this.#wanted.get(name);
    if (same !== undefined) return same.page;
    const { promise, resolve, reject } = withResolvers<Page>();
    this.#wanted.set(name, { ...address, from, page: promise, resolve, reject });
    return promise;
  }

  /**
   * Reads a page of the log, and tries again while the gateway cannot ask Redis.
   * @throws InferenceError `unavailable` if the gateway could not read Redis for the policy's
   * budget
   */
  async readSurely(address: RequestAddress, from: number, policy: RetryPolicy): Promise<Page> {
    try {
      return await retrying(() => this.read(address, from), policy);
    } catch (cause) {
      if (!isTransient(cause)) throw cause;
      throw fixedError("unavailable", "stream", { cause });
    }
  }

  #send(): void {
    const all = [...this.#wanted.values()];
    this.#wanted = new Map();
    for (let i = 0; i < all.length; i += READS_PER_CALL) void this.#call(all.slice(i, i + READS_PER_CALL));
  }

  async #call(reads: readonly Wanted[]): Promise<void> {
    try {
      const pages = await readLogs(this.#redis, reads);
      for (const [i, { resolve, reject }] of reads.entries()) {
        const page = pages[i];
        if (page === undefined) reject(new TypeError("a read of the log was not answered"));
        else resolve(page);
      }
    } catch (error) {
      for (const { reject } of reads) reject(error);
    }
  }
}

/** `Promise.withResolvers`, which Node 20 lacks. */
function withResolvers<T>() {
  let resolve: (value: T) => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
