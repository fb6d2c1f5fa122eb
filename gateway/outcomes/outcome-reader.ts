/**
 * Reads the outcomes of many requests from Redis: first which requests have ended, hundreds to a
 * call, and then their outcomes. The two steps run apart, so large outcomes hold up no other
 * request.
 */
import { readKept, type Outcome } from "#shared/contract/outcome.js";
import { chunks } from "#shared/chunks.js";
import { findOutcomes, type Found } from "#shared/queue/admission/find-outcomes.js";
import { readOwnRecord } from "#shared/queue/pieces/outcome.js";
import { dropIfSilent, type RedisClient } from "#shared/redis/connect.js";
import { callGroups } from "#shared/redis/slots.js";

export interface Readable {
  /** Redis key of the outcome. */
  readonly key: string;
  /** Whether Redis has had a record of the request. */
  readonly admitted: boolean;
}

/** Receives one result for each request of a look. */
export interface OutcomeReceiver<Item> {
  ended(item: Item, outcome: Outcome): void;
  /** The request has no outcome yet. */
  stillOpen(item: Item): void;
  /** Redis had a record of the request, and has none any more. */
  lost(item: Item): void;
  /** The gateway could not ask Redis. */
  notRead(item: Item): void;
}

/**
 * Requests of one call, which holds up Redis for half a millisecond. Between two calls the event
 * loop serves other work.
 */
const LOOKS_AT_ONCE = 500;
/** Outcomes that one round reads together. */
const BODIES_AT_ONCE = { bytes: 4_194_304, items: 256 };

export class OutcomeReader<Item extends Readable> {
  readonly #redis: RedisClient;
  readonly #receiver: OutcomeReceiver<Item>;
  /** Requests that have ended, the bytes of their outcomes, and whether the outcomes were brief. */
  #ended: { readonly item: Item; readonly bytes: number; readonly brief: boolean }[] = [];
  #reading: Promise<void> | undefined;

  constructor(redis: RedisClient, receiver: OutcomeReceiver<Item>) {
    this.#redis = redis;
    this.#receiver = receiver;
  }

  /** Resolves when Redis has said which requests have ended; their outcomes come later. */
  async look(items: readonly Item[]): Promise<void> {
    // The calls to all slots run side by side, because the master of one may be away.
    await Promise.all(callGroups(this.#redis, items, ({ key }) => key).map((ofSlot) => this.#lookInSlot(ofSlot)));
  }

  async #lookInSlot(items: readonly Item[]): Promise<void> {
    for (const some of chunks(items, () => 0, { bytes: Infinity, items: LOOKS_AT_ONCE })) await this.#find(some);
  }

  /** Resolves when no read is under way. */
  async idle(): Promise<void> {
    await this.#reading;
  }

  async #find(items: readonly Item[]): Promise<void> {
    // This is noted before the gateway asks Redis, because the reply says nothing about a request
    // that Redis admits meanwhile.
    const admitted = items.map((item) => item.admitted);
    let found: Found[];
    try {
      const keys = items.map(({ key }) => key);
      found = await findOutcomes(this.#redis, keys);
    } catch {
      for (const item of items) this.#receiver.notRead(item);
      return;
    }
    for (const [i, item] of items.entries()) {
      const one = found[i];
      if (one?.said === "ended") this.#ended.push({ item, bytes: one.bytes, brief: one.brief });
      else if (one?.said === "no record" && admitted[i] === true) this.#receiver.lost(item);
      else this.#receiver.stillOpen(item);
    }
    if (this.#ended.length > 0) this.#reading ??= this.#readEnded();
  }

  async #readEnded(): Promise<void> {
    while (this.#ended.length > 0) {
      const ended = this.#ended;
      this.#ended = [];
      for (const some of chunks(ended, ({ bytes }) => bytes, BODIES_AT_ONCE)) {
        await Promise.all(some.map(({ item, brief }) => this.#read(item, brief)));
      }
    }
    this.#reading = undefined;
  }

  async #read(item: Item, brief: boolean): Promise<void> {
    try {
      const record = await readOwnRecord(this.#redis, item.key, brief);
      if (record?.kind) this.#receiver.ended(item, readKept(record.kind, record.body));
      else this.#receiver.stillOpen(item);
    } catch (error) {
      dropIfSilent(this.#redis, error);
      this.#receiver.notRead(item);
    }
  }
}
