/**
 * Sends committed outcomes to the gateways that wait for them. A batch is one message for each
 * gateway, or a few messages if the batch is large. A lost message costs time, never an answer.
 * Messages have numbers, and beats between them say that the worker lives, so a gateway notices a
 * gap. While this worker cannot reach NATS, it leaves the names of committed requests in Redis.
 */
import type { Logger } from "pino";
import type { StoredOutcome } from "#shared/contract/outcome.js";
import {
  encodeMessage,
  MESSAGE_OVERHEAD_BYTES,
  REPLY_OVERHEAD_BYTES,
  replyKey,
  type Reply,
} from "#shared/contract/reply.js";
import { chunks } from "#shared/chunks.js";
import type { Bus } from "#shared/nats/connect.js";
import { countPublished } from "#shared/nats/published.js";
import { requestName } from "#shared/queue/address.js";
import type { Delivery } from "#shared/queue/entry.js";
import { replySubject } from "#shared/queue/keys.js";
import { noteUnpublished } from "#shared/queue/work/streams/note-unpublished.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay, retrying } from "#shared/retry.js";
import { realWorld, type World } from "#shared/world.js";
import { ReplyChannels, type Due } from "./reply-channels.js";

export interface Publication {
  readonly delivery: Delivery;
  /** Undefined if the gateway must look into Redis. */
  readonly outcome: StoredOutcome | undefined;
}

export interface PublisherSettings {
  readonly bus: Bus;
  readonly redis: RedisClient;
  /** The deployment's secret, for the tags of messages. */
  readonly secret: () => Buffer;
  readonly world?: World;
  readonly log: Logger;
}

/**
 * Time between beats, in ms. A message replaces the next beat. So a listening gateway hears of a
 * worker after two beats at the latest, and counts a worker as silent after four
 * (gateway/outcomes/reply-gaps.ts).
 */
const BEAT_MS = 250;
/** How long the worker tries to note unpublished names in Redis, in ms. */
const NOTE_BUDGET_MS = 5_000;
const LOOK = Buffer.alloc(0);
/** Most bytes of a name, because its length takes one byte. */
const NAME_BYTES = 255;

/**
 * One publisher for all lanes of a worker process, because a channel joins a process and a gateway.
 */
export class ReplyPublisher {
  readonly #settings: PublisherSettings;
  readonly #world: World;
  readonly #sender: string;
  readonly #channels: ReplyChannels;
  /** Keys by gateway. All keys are derived from `#secret`. */
  #keys = new Map<string, Buffer>();
  #secret: Buffer | undefined;
  /** The count of connections to NATS at the last beat. */
  #connections = 0;

  constructor(settings: PublisherSettings) {
    this.#settings = settings;
    this.#world = settings.world ?? realWorld;
    this.#sender = this.#world.hex(8);
    this.#channels = new ReplyChannels(this.#sender);
  }

  /**
   * To be called before a commit, so that the commit's gateways listen for this worker. Resolves
   * after the messages have left the process.
   */
  async begin(deliveries: readonly Delivery[]): Promise<void> {
    for (const gateway of gatewaysOf(deliveries)) {
      const mark = this.#channels.begin(gateway);
      if (mark !== undefined) this.#send({ gateway, mark });
    }
    // The NATS client writes its buffer at the end of this turn.
    await Promise.resolve();
  }

  /**
   * To be called after the commit, with or without success.
   * @param publications an outcome that is too large for a message stays in Redis, and the message
   * sends its gateway there
   */
  end(deliveries: readonly Delivery[], publications: readonly Publication[]): void {
    const { bus } = this.#settings;
    const byGateway = new Map<string, Reply[]>();
    for (const { delivery, outcome } of publications) {
      const name = requestName(delivery);
      const fits = outcome !== undefined && outcome.body.length + ROOM_BYTES <= bus.maxBytes();
      const reply: Reply = fits ? { name, ...outcome } : { name, kind: "look", body: LOOK };
      const replies = byGateway.get(delivery.gateway);
      if (replies === undefined) byGateway.set(delivery.gateway, [reply]);
      else replies.push(reply);
    }
    for (const [gateway, replies] of byGateway) {
      if (bus.isUp()) this.#publish(gateway, replies);
      else void this.#note(gateway, replies);
    }
    for (const gateway of gatewaysOf(deliveries)) this.#channels.end(gateway);
  }

  /** Sends beats until `signal` aborts, and then a last message to every gateway. */
  async beatWhileOpen(signal: AbortSignal): Promise<void> {
    const { bus } = this.#settings;
    while (!signal.aborted) {
      await delay(BEAT_MS, signal, this.#world);
      if (!bus.isUp()) continue;
      const connections = bus.connections();
      const due = connections === this.#connections && !signal.aborted ? this.#channels.beat() : this.#channels.all();
      this.#connections = connections;
      for (const one of due) this.#send(one);
    }
  }

  #publish(gateway: string, replies: readonly Reply[]): void {
    const bytesOf = ({ body }: Reply) => body.length + NAME_BYTES + REPLY_OVERHEAD_BYTES;
    const bytes = this.#settings.bus.maxBytes() - MESSAGE_OVERHEAD_BYTES;
    for (const some of chunks(replies, bytesOf, { bytes })) {
      this.#send({ gateway, mark: this.#channels.next(gateway) }, some);
    }
  }

  async #note(gateway: string, replies: readonly Reply[]): Promise<void> {
    const { redis, log } = this.#settings;
    const names = replies.map(({ name }) => name);
    try {
      await retrying(() => noteUnpublished(redis, gateway, names), { budgetMs: NOTE_BUDGET_MS, world: this.#world });
    } catch (error) {
      log.warn({ gateway, error: String(error) }, "outcomes were committed, but their gateway could not be told");
      this.#channels.skip(gateway);
    }
  }

  #send({ gateway, mark }: Due, replies: readonly Reply[] = []): void {
    const message = encodeMessage(this.#keyFor(gateway), mark, replies);
    countPublished("reply", message.length);
    this.#settings.bus.publish(replySubject(gateway), message);
  }

  #keyFor(gateway: string): Buffer {
    const secret = this.#settings.secret();
    if (this.#secret?.equals(secret) !== true || this.#keys.size > MOST_KEYS) this.#keys = new Map();
    this.#secret = secret;
    const known = this.#keys.get(gateway);
    if (known !== undefined) return known;
    const key = replyKey(secret, this.#sender, gateway);
    this.#keys.set(gateway, key);
    return key;
  }
}

/** Bytes of a message with one reply, without the reply's body. */
const ROOM_BYTES = MESSAGE_OVERHEAD_BYTES + REPLY_OVERHEAD_BYTES + NAME_BYTES;
/** With more keys than this, the publisher forgets all keys, because most gateways are gone. */
const MOST_KEYS = 10_000;

function gatewaysOf(deliveries: readonly Delivery[]): Set<string> {
  return new Set(deliveries.map(({ gateway }) => gateway));
}
