/**
 * Consumers of JetStream that begin at an index of a request's stream. JetStream counts the
 * messages of all requests together, so the place of an index is looked for. A consumer that nobody
 * asks for messages goes away by itself.
 */
import { createHash, randomBytes } from "node:crypto";
import { capture } from "#shared/capture/capture.js";
import { findCaptured, lastCaptured, nextIndex, ownFeed, TOKEN_STREAM } from "#shared/capture/captured.js";
import { fixedError } from "#shared/errors.js";
import {
  AckPolicy,
  DeliverPolicy,
  isAnswer,
  isNotFound,
  type Bus,
  type ConsumerInfo,
  type JetStreamManager,
} from "#shared/nats/connect.js";
import type { RequestAddress } from "#shared/queue/address.js";
import { readLabels } from "#shared/queue/jobs/read-labels.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import type { Tail } from "../stream/page-status.js";
import type { TokenStream } from "./token-stream.js";

export interface ConsumersSettings {
  readonly redis: RedisClient;
  readonly bus: Bus;
  readonly stream: TokenStream;
  /** A durable consumer is kept for this long without being read. */
  readonly keptMs: number;
  /** Consumers that a tenant may have; about, where several gateways make one at once. */
  readonly limit: number;
}

export interface ConsumerTerms {
  readonly tenant: string;
  /** The subject whose messages it gives. */
  readonly subject: string;
  /** The reader's own name for it, under which it finds it again. */
  readonly durable: string | undefined;
  /** How long one without such a name is kept without being read. */
  readonly ttlMs: number;
}

export interface Consumer {
  readonly name: string;
  /** The index of the first record that it gives. */
  readonly from: number;
}

/** Where a new consumer begins: at a message of the JetStream stream. */
interface Start {
  readonly seq: number;
  readonly index: number;
}

const NS_PER_MS = 1_000_000;
/** JetStream may be behind the log for this long before a consumer begins below its index. */
const BEHIND_MS = 1_000;
const LOOK_MS = 20;
/** So often a consumer is made anew that others make at the same time. */
const RACES = 10;
/** Messages that a reader may have and not have acknowledged, and its open requests for more. */
const LIMITS = { max_ack_pending: 4_096, max_waiting: 16 };

export class Consumers {
  readonly #settings: ConsumersSettings;

  constructor(settings: ConsumersSettings) {
    this.#settings = settings;
  }

  /**
   * How far a request is captured whose log is not kept any more.
   * @returns undefined where nothing of it is captured
   */
  async capturedTail(address: RequestAddress): Promise<Tail | undefined> {
    const { bus, stream } = this.#settings;
    await stream.whenMade();
    const last = await lastCaptured(bus, ownFeed(address));
    return last && { next: last.index + 1, isOver: true };
  }

  /**
   * Gives a consumer of one request.
   * @param from the index that it is to begin at; undefined: at 0, or where the durable one stands
   * @param tail of the request's log
   * @throws InferenceError `resume_window_passed` where JetStream does not have the index any more
   */
  async ofRequest(
    address: RequestAddress,
    terms: ConsumerTerms,
    from: number | undefined,
    tail: Tail,
  ): Promise<Consumer> {
    const { bus } = this.#settings;
    const manager = await this.#manager();
    const name = nameOf(terms);
    if (from === undefined && terms.durable !== undefined) {
      const seq = await this.#resume(manager, name, terms);
      if (seq !== undefined) return { name, from: await nextIndex(bus, ownFeed(address), seq) };
    }
    const start = await this.#startAt(address, from ?? 0, tail);
    await this.#make(manager, name, terms, start.seq);
    return { name, from: start.index };
  }

  /** Gives a consumer of all that is captured of many requests. */
  async ofMany(terms: ConsumerTerms): Promise<Consumer> {
    const manager = await this.#manager();
    const name = nameOf(terms);
    const isThere = terms.durable !== undefined && (await this.#resume(manager, name, terms)) !== undefined;
    if (!isThere) await this.#make(manager, name, terms, 1);
    return { name, from: 0 };
  }

  async #manager(): Promise<JetStreamManager> {
    const { bus, stream } = this.#settings;
    await stream.whenMade();
    return bus.jetStream();
  }

  async #startAt(address: RequestAddress, from: number, tail: Tail): Promise<Start> {
    const { redis, bus } = this.#settings;
    const feed = ownFeed(address);
    // What nobody could publish while NATS was away is published for its first late reader.
    if (tail.isOver && ((await lastCaptured(bus, feed))?.index ?? -1) < tail.next - 1) {
      await capture({ redis, bus }, address, await readLabels(redis, address));
    }
    const giveUpAt = performance.now() + BEHIND_MS;
    for (;;) {
      const found = await findCaptured(bus, feed, from);
      if (found !== undefined) {
        if (found.index > from) throw fixedError("resume_window_passed", "usual");
        return found;
      }
      const last = (await lastCaptured(bus, feed)) ?? { seq: 0, index: -1 };
      // The next one is not there yet, and comes after the last.
      const isNext = last.index === from - 1;
      if (isNext || performance.now() >= giveUpAt) return { seq: last.seq + 1, index: last.index + 1 };
      await delay(LOOK_MS);
    }
  }

  /**
   * Has a durable consumer go on behind what its reader has acknowledged. What the reader was given
   * beyond that would come again after a while, behind what follows it; so the consumer is made
   * anew.
   * @returns the place that it goes on at; undefined where there is none of this name
   */
  async #resume(manager: JetStreamManager, name: string, terms: ConsumerTerms): Promise<number | undefined> {
    const info = await find(manager, name);
    if (info === undefined) return undefined;
    const seq = Math.max(info.ack_floor.stream_seq + 1, info.config.opt_start_seq ?? 1);
    if (info.num_ack_pending > 0) await this.#make(manager, name, terms, seq);
    return seq;
  }

  /** @throws InferenceError `subscription_limit` */
  async #make(manager: JetStreamManager, name: string, terms: ConsumerTerms, seq: number): Promise<void> {
    const { keptMs, limit } = this.#settings;
    const { tenant, subject, durable, ttlMs } = terms;
    const { config, state } = await manager.streams.info(TOKEN_STREAM);
    const isThere = durable !== undefined && (await find(manager, name)) !== undefined;
    if (!isThere && state.consumer_count >= Math.min(limit, config.max_consumers)) {
      const isFull = state.consumer_count >= config.max_consumers && config.max_consumers > 0;
      if (isFull || (await countOf(manager, tenant)) >= limit) throw fixedError("subscription_limit", "usual");
    }
    const made = {
      durable_name: name,
      filter_subject: subject,
      ...(seq <= 1
        ? { deliver_policy: DeliverPolicy.All }
        : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: seq }),
      ack_policy: AckPolicy.Explicit,
      inactive_threshold: (durable === undefined ? ttlMs : Math.max(keptMs, ttlMs)) * NS_PER_MS,
      ...LIMITS,
    };
    for (let races = RACES; ; races--) {
      if (durable !== undefined) await removeIfThere(manager, name);
      try {
        return void (await manager.consumers.add(TOKEN_STREAM, made));
      } catch (error) {
        // Another gateway has just made it, to begin elsewhere.
        if (durable === undefined || races === 0 || !isAnswer(error)) throw error;
      }
    }
  }
}

/** Consumers of a tenant have names that begin alike, so that they can be counted. */
function prefixOf(tenant: string): string {
  return `c_${digestOf(tenant).slice(0, 12)}_`;
}

/** The name of a durable one says whose it is and of what, so no other tenant's can be meant. */
function nameOf({ tenant, subject, durable }: ConsumerTerms): string {
  const own = durable === undefined ? randomBytes(16).toString("hex") : digestOf(`${subject} ${durable}`).slice(0, 32);
  return `${prefixOf(tenant)}${own}`;
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

async function find(manager: JetStreamManager, name: string): Promise<ConsumerInfo | undefined> {
  try {
    return await manager.consumers.info(TOKEN_STREAM, name);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

async function removeIfThere(manager: JetStreamManager, name: string): Promise<void> {
  try {
    await manager.consumers.delete(TOKEN_STREAM, name);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

async function countOf(manager: JetStreamManager, tenant: string): Promise<number> {
  const prefix = prefixOf(tenant);
  let count = 0;
  for await (const { name } of manager.consumers.list(TOKEN_STREAM)) if (name.startsWith(prefix)) count++;
  return count;
}
