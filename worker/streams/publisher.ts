/**
 * Sends committed records to the readers at NATS. NATS is the fast path: gateways read missed
 * records from the log. Other readers have only NATS, so a worker publishes records again that NATS
 * may lack: after a takeover, and after a lost connection. With capture, JetStream says which
 * records are missing, and a request ends only after JetStream has the last record.
 */
import type { Logger } from "pino";
import {
  capture,
  messageOf,
  publishAgain,
  publishCaptured,
  publishOn,
  storeCaptured,
} from "#shared/capture/capture.js";
import { feedsOf, type Feed } from "#shared/capture/captured.js";
import type { Bus } from "#shared/nats/connect.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay, within } from "#shared/retry.js";
import type { Delivery } from "#shared/queue/entry.js";

export interface TokenPublisherSettings {
  readonly redis: RedisClient;
  readonly bus: Bus;
  readonly log: Logger;
}

/**
 * Records to publish again without capture, because no process then knows which records arrived. A
 * dying worker leaves at most this many appended records of a stream unpublished, because the
 * engine waits for Redis after eight iterations.
 */
const UNSURE = 16;
/** Longest wait of a request's end for JetStream, in ms. */
const STORED_MS = 1_500;
/** Pauses between tries, in ms. Each is twice the pause before, up to `most`. */
const RETRY_MS = { first: 50, most: 5_000 };
/**
 * Longest time, in ms, of offering records to JetStream. After that, the gateway publishes missing
 * records when a client asks for a subscription.
 */
const GIVE_UP_MS = 300_000;

/**
 * Most ended requests that wait for JetStream at a time. The worker gives up further requests at
 * once.
 */
const MOST_WAITING = 1_000;

/** A stream, as far as its messages need it. */
export interface Published {
  readonly held: { readonly delivery: Delivery };
  /** The job's labels, as tokens. The publisher sends records for each label. */
  readonly labels: readonly string[];
  /** Whether another worker may have published records of it. */
  readonly takenOver: boolean;
}

/** The state of one stream's messages, which is the same for all of its subjects. */
interface Sent {
  readonly feeds: readonly Feed[];
  /** The connection of the messages; `NONE` if some may not have arrived. */
  connection: number;
  /** The index after the newest published record, from any worker. */
  next: number;
  /** The index after the newest record that this worker has appended. */
  tail: number;
  /**
   * Publishes from the log, and resolves to whether all records arrived. Meanwhile nothing else
   * publishes the stream.
   */
  filling: Promise<boolean> | undefined;
  /** Whether JetStream has the final record, and so all records before. */
  stored: Promise<boolean> | undefined;
}

const NONE = -1;

export class TokenPublisher {
  readonly #settings: TokenPublisherSettings;
  readonly #sent = new WeakMap<Published, Sent>();
  readonly #closing = new AbortController();
  /** Ended requests that wait for JetStream. */
  #waiting = 0;
  /** Whether JetStream took the last records. If not, no end of a request waits for JetStream. */
  #isStoring = true;

  constructor(settings: TokenPublisherSettings) {
    this.#settings = settings;
  }

  /**
   * Publishes appended records.
   * @param first index of the first of `records`
   * @param isOver whether the last of `records` is the final record
   */
  publish(stream: Published, first: number, records: readonly string[], isOver: boolean): void {
    const { bus } = this.#settings;
    // Earlier records may be another worker's, which may or may not have published them.
    const sent = this.#sentOf(stream, first === 0 ? bus.connections() : NONE, first);
    sent.tail = first + records.length;
    if (sent.filling !== undefined) return;
    if (!bus.isUp() || sent.connection !== bus.connections()) {
      void this.#fill(stream, sent);
      return;
    }
    sent.next = sent.tail;
    for (const [i, record] of records.entries()) {
      const message = messageOf(bus, record);
      const index = first + i;
      if (!bus.captures) publishOn(bus, sent.feeds, message);
      else if (isOver && index === sent.tail - 1) sent.stored = this.#store(sent.feeds, message, index);
      else for (const feed of sent.feeds) publishCaptured(bus, feed, message, index);
    }
  }

  /**
   * To be called before the commit of the outcome, after which no worker continues the stream.
   * Resolves when JetStream has all records, or does not confirm in time.
   */
  async complete(stream: Published): Promise<void> {
    const { bus, log } = this.#settings;
    if (!bus.captures) {
      if (stream.takenOver && !this.#sent.has(stream)) void this.#fill(stream, this.#sentOf(stream, NONE, 0));
      return;
    }
    if (this.#waiting >= MOST_WAITING) return;
    this.#waiting++;
    const whole = this.#whole(stream).finally(() => this.#waiting--);
    if (!this.#isStoring) return;
    if (await within(STORED_MS, whole)) return;
    this.#isStoring = false;
    log.warn("JetStream does not store records; they are offered to it again later");
  }

  /** Leaves missing records to other processes. */
  close(): void {
    this.#closing.abort();
  }

  async #whole(stream: Published): Promise<boolean> {
    const sent = this.#sentOf(stream, NONE, 0);
    if ((await sent.stored) === true) return (this.#isStoring = true);
    return sent.filling ?? this.#fill(stream, sent);
  }

  #sentOf(stream: Published, connection: number, next: number): Sent {
    let sent = this.#sent.get(stream);
    if (sent === undefined) {
      const feeds = feedsOf(stream.held.delivery, stream.labels);
      sent = { feeds, connection, next, tail: next, filling: undefined, stored: undefined };
      this.#sent.set(stream, sent);
    }
    return sent;
  }

  async #store(feeds: readonly Feed[], message: Buffer, index: number): Promise<boolean> {
    const { bus } = this.#settings;
    const connection = bus.connections();
    try {
      await Promise.all(feeds.map((feed) => storeCaptured(bus, feed, message, index)));
      return bus.connections() === connection;
    } catch {
      return false;
    }
  }

  #fill(stream: Published, sent: Sent): Promise<boolean> {
    sent.filling = this.#publishRest(stream, sent).finally(() => {
      sent.filling = undefined;
    });
    return sent.filling;
  }

  async #publishRest(stream: Published, sent: Sent): Promise<boolean> {
    const { bus, log } = this.#settings;
    const { signal } = this.#closing;
    const giveUpAt = performance.now() + GIVE_UP_MS;
    for (let pauseMs = RETRY_MS.first; !signal.aborted && performance.now() < giveUpAt;) {
      const connection = bus.connections();
      try {
        const next = bus.isUp() ? await this.#publishFromLog(stream, sent) : 0;
        if (bus.isUp() && bus.connections() === connection && next >= sent.tail) {
          sent.connection = connection;
          sent.next = next;
          this.#isStoring = true;
          return true;
        }
      } catch (error) {
        log.debug({ error: String(error) }, "records could not be published again");
      }
      await delay(pauseMs, signal);
      pauseMs = Math.min(pauseMs * 2, RETRY_MS.most);
    }
    sent.connection = NONE;
    return false;
  }

  /** @returns the index after the last published record */
  async #publishFromLog({ held, labels }: Published, { next, tail }: Sent): Promise<number> {
    if (this.#settings.bus.captures) return capture(this.#settings, held.delivery, labels);
    // This worker has appended nothing: all records are another worker's.
    if (tail === 0) return publishAgain(this.#settings, held.delivery, labels, -UNSURE);
    const from = Math.max(0, next - UNSURE);
    return from + (await publishAgain(this.#settings, held.delivery, labels, from));
  }
}
