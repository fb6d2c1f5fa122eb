/**
 * Consumers of JetStream that begin at an index of a request's stream. JetStream counts the
 * messages of all requests together, so a search finds the place of an index. NATS removes a
 * consumer that no reader asks for messages.
 */
import { createHash, randomBytes } from "node:crypto";
import { capture } from "#shared/capture/capture.js";
import { findCaptured, lastCaptured, nextIndex, ownFeed, TOKEN_STREAM } from "#shared/capture/captured.js";
import { errorKinds, fixedError, InferenceError } from "#shared/errors.js";
import {
  AckPolicy,
  DeliverPolicy,
  isAnswer,
  isNotFound,
  type ConsumerInfo,
  type JetStreamManager,
} from "#shared/nats/client.js";
import type { Bus } from "#shared/nats/connect.js";
import type { RequestAddress } from "#shared/queue/address.js";
import { readLabels } from "#shared/queue/jobs/read-labels.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { tooManyOf } from "../admission/budget.js";
import type { Tail } from "../stream/page-status.js";
import type { TokenStream } from "./token-stream.js";

export interface ConsumersSettings {
  readonly redis: RedisClient;
  readonly bus: Bus;
  readonly stream: TokenStream;
  /** How long NATS keeps a durable consumer without a reader, in ms. */
  readonly keptMs: number;
  /**
   * Most consumers of a tenant that has no limit of its own, or slightly more if several gateways
   * make consumers at once.
   */
  readonly limit: number;
}

export interface ConsumerTerms {
  readonly tenant: string;
  /** The subject of the consumer's messages. */
  readonly subject: string;
  /**
   * The reader's name for the consumer, to find it again; undefined for a consumer without a name.
   */
  readonly durable: string | undefined;
  /**
   * How long NATS keeps the consumer without a reader, in ms; a durable consumer at least `keptMs`.
   */
  readonly ttlMs: number;
  /** Most consumers of the tenant; absent: as the deployment says. */
  readonly most?: number | undefined;
}

export interface Consumer {
  readonly name: string;
  /** The index of the consumer's first record. */
  readonly from: number;
}

/** The beginning of a new consumer: a message of the JetStream stream. */
interface Start {
  readonly seq: number;
  readonly index: number;
}

const NS_PER_MS = 1_000_000;
/** How long JetStream may be behind the log, before a consumer begins below its index. */
const BEHIND_MS = 1_000;
const LOOK_MS = 20;
/** Most retries if other gateways make the same consumer at the same time. */
const RACES = 10;
/** Most messages that a reader has not acknowledged, and most open requests for more. */
const LIMITS = { max_ack_pending: 4_096, max_waiting: 16 };

export class Consumers {
  readonly #settings: ConsumersSettings;

  constructor(settings: ConsumersSettings) {
    this.#settings = settings;
  }

  /**
   * The end of a request's captured records, for a request without a log.
   * @returns undefined if JetStream has no record of the request
   */
  async capturedTail(address: RequestAddress): Promise<Tail | undefined> {
    const { bus, stream } = this.#settings;
    await stream.whenMade();
    const last = await lastCaptured(bus, ownFeed(address));
    return last && { next: last.index + 1, isOver: true };
  }

  /**
   * Gives a consumer of a request.
   * @param from the consumer's first index; undefined for 0, or for the place of the durable
   * consumer
   * @param tail of the request's log
   * @throws InferenceError `resume_window_passed` if JetStream no longer has the index
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

  /** Gives a consumer of all captured records of many requests. */
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
    // For the first late reader, publishes the records that no process could publish while NATS was
    // away.
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
      // The record is not there yet, and will come right after the last.
      const isNext = last.index === from - 1;
      if (isNext || performance.now() >= giveUpAt) return { seq: last.seq + 1, index: last.index + 1 };
      await delay(LOOK_MS);
    }
  }

  /**
   * Lets a durable consumer continue behind the messages that its reader has acknowledged. If the
   * reader has unacknowledged messages, this method makes the consumer anew. Otherwise JetStream
   * would send these messages again only after a while, behind later messages.
   * @returns the place at which the consumer continues; undefined if there is no such consumer
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
    const { tenant, subject, durable, ttlMs, most = limit } = terms;
    const { config, state } = await manager.streams.info(TOKEN_STREAM);
    const isThere = durable !== undefined && (await find(manager, name)) !== undefined;
    if (!isThere && state.consumer_count >= Math.min(most, config.max_consumers)) {
      const isFull = state.consumer_count >= config.max_consumers && config.max_consumers > 0;
      if (isFull) throw fixedError("subscription_limit", "usual");
      if ((await countOf(manager, tenant)) >= most) {
        const { usual } = errorKinds.subscription_limit.texts;
        throw new InferenceError("subscription_limit", usual, tooManyOf("subscriptions"));
      }
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
        // Another gateway has just made the consumer, with another beginning.
        if (durable === undefined || races === 0 || !isAnswer(error)) throw error;
      }
    }
  }
}

/** The names of a tenant's consumers begin alike, so that a gateway can count the consumers. */
function prefixOf(tenant: string): string {
  return `c_${digestOf(tenant).slice(0, 12)}_`;
}

/**
 * A durable consumer's name comes from tenant, subject and the reader's name. So no reader can
 * reach another tenant's consumer.
 */
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
