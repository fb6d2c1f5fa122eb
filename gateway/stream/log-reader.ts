/** Reads of one turn of the event loop go to Redis together: an iteration of a batch wakes all its streams at once, and so does a restart all their readers. */
import type { RequestAddress } from "#shared/contract/request-id.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { readLogs, type Page } from "./read-logs.js";

/** What one script call reads at most: past that it would hold up everybody's commits. */
const READS_PER_CALL = 32;

interface Wanted extends RequestAddress {
  readonly from: number;
  readonly page: Promise<Page>;
  readonly resolve: (page: Page) => void;
  readonly reject: (error: unknown) => void;
}

export class LogReader {
  readonly #redis: RedisClient;
  /** Reads of this turn by lane (every call touches one slot), then by request and index: readers at the same place share one. */
  #wanted = new Map<string, Map<string, Wanted>>();

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** @throws the client's error while Redis cannot be asked */
  read(address: RequestAddress, from: number): Promise<Page> {
    if (this.#wanted.size === 0) setImmediate(() => this.#send());
    const { model, version, shard } = address.lane;
    const lane = `${model}:${version}:${shard}`;
    let reads = this.#wanted.get(lane);
    if (reads === undefined) this.#wanted.set(lane, (reads = new Map<string, Wanted>()));
    const place = `${address.request}:${from}`;
    const same = reads.get(place);
    if (same !== undefined) return same.page;
    const { promise, resolve, reject } = withResolvers<Page>();
    reads.set(place, { ...address, from, page: promise, resolve, reject });
    return promise;
  }

  #send(): void {
    const wanted = this.#wanted;
    this.#wanted = new Map();
    for (const reads of wanted.values()) {
      const all = [...reads.values()];
      for (let i = 0; i < all.length; i += READS_PER_CALL) void this.#call(all.slice(i, i + READS_PER_CALL));
    }
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
