/**
 * The streams that this gateway follows. One function serves live and late readers, resumed ones,
 * and recovery from a lost message: subscribe, read the log from the wanted index, follow the
 * messages, and read the log again when none come.
 */
import type { Logger } from "pino";
import { addressText, type RequestAddress } from "#shared/queue/address.js";
import { tokenSubject } from "#shared/queue/keys.js";
import type { Bus } from "#shared/nats/connect.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import type { Readers } from "./readers.js";
import { LiveStream, type GeneratorLookup } from "./live-stream.js";
import { LogReader } from "./log-reader.js";

export interface RelaySettings {
  readonly redis: RedisClient;
  readonly bus: Bus;
  readonly models: GeneratorLookup;
  readonly readers: Readers;
  /** Called for each followed stream after its final record. */
  readonly onEnd: (address: RequestAddress) => void;
  readonly log: Logger;
}

interface Followed {
  readonly live: LiveStream;
  /** Resolves when NATS surely delivers messages from now on, or is too slow to confirm that. */
  readonly ready: Promise<void>;
  readonly unsubscribe: () => void;
  /**
   * When the stream last had a reader, in ms on `performance.now()`'s clock; Infinity until
   * `ready`, because a caller that waits for that is about to read.
   */
  readAt: number;
}

/**
 * The gateway reads the log after this long without a message, in ms. So it notices within this
 * time that a message got lost after the append.
 */
const SILENCE_MS = 500;
/** With NATS down no messages come, and the gateway reads the log this often, in ms. */
const POLL_MS = 40;
/** How often the gateway checks each stream for silence, in ms. */
const TICK_MS = 20;
/** How long a live stream stays without readers, in ms, because readers come back. */
const LINGER_MS = 5_000;

export class Relay {
  readonly logs: LogReader;
  readonly readers: Readers;
  readonly models: GeneratorLookup;
  readonly #bus: Bus;
  readonly #onEnd: (address: RequestAddress) => void;
  readonly #log: Logger;
  /** By address. A stream leaves when it is over, or has had no reader for a while. */
  readonly #followed = new Map<string, Followed>();

  constructor({ redis, bus, models, readers, onEnd, log }: RelaySettings) {
    this.logs = new LogReader(redis);
    this.readers = readers;
    this.models = models;
    this.#bus = bus;
    this.#onEnd = onEnd;
    this.#log = log;
  }

  /** How many requests this gateway follows. */
  get size(): number {
    return this.#followed.size;
  }

  /** Subscribes before admission, so that not even the first record waits for a read of the log. */
  async subscribe(address: RequestAddress): Promise<void> {
    await this.#follow(address, 0).ready;
  }

  /** Notes that the request is in Redis. */
  admitted(address: RequestAddress): void {
    this.#followed.get(addressText(address))?.live.begin();
  }

  /**
   * The request was refused, or admitted elsewhere: without a reader the gateway stops following.
   */
  release(address: RequestAddress): void {
    const followed = this.#followed.get(addressText(address));
    if (followed !== undefined && !followed.live.hasReaders) this.#close(followed);
  }

  /** The live stream of a request; undefined if the gateway does not follow the request. */
  liveStream(address: RequestAddress): LiveStream | undefined {
    return this.#followed.get(addressText(address))?.live;
  }

  /**
   * Starts to follow a request, or returns the present live stream.
   * @param next how many records the log held when the caller read the log
   */
  async follow(address: RequestAddress, next: number): Promise<LiveStream> {
    const known = this.liveStream(address);
    if (known !== undefined) return known;
    const { live, ready } = this.#follow(address, next);
    await ready;
    live.begin();
    live.readLog("start");
    return live;
  }

  /** Reads the logs of silent streams, and closes streams that are over, until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(TICK_MS, signal);
      const now = performance.now();
      const silence = this.#bus.isUp() ? SILENCE_MS : POLL_MS;
      for (const followed of this.#followed.values()) {
        const { live, readAt } = followed;
        if (live.hasReaders) followed.readAt = now;
        if (live.isOver || now - readAt > LINGER_MS) this.#close(followed);
        else live.readLogIfSilent(now, silence);
      }
    }
    for (const followed of this.#followed.values()) this.#close(followed);
  }

  #follow(address: RequestAddress, next: number): Followed {
    const key = addressText(address);
    const known = this.#followed.get(key);
    if (known !== undefined) return known;
    const live = new LiveStream({ address, logs: this.logs, models: this.models, log: this.#log }, next);
    const subject = tokenSubject(address);
    const subscribing = this.#bus.subscribe(subject, (message) => live.receive(message));
    const failed = (error: unknown) => {
      this.#log.warn({ error: String(error) }, "a stream is followed without NATS");
    };
    const isReady = () => void (followed.readAt = performance.now());
    const followed: Followed = {
      live,
      ready: subscribing.then(() => undefined, failed).then(isReady),
      unsubscribe: () => void subscribing.then((unsubscribe) => unsubscribe()).catch(() => undefined),
      readAt: Infinity,
    };
    this.#followed.set(key, followed);
    return followed;
  }

  #close({ live, unsubscribe }: Followed): void {
    this.#followed.delete(addressText(live.address));
    if (live.isOver && !live.hasFailed) this.#onEnd(live.address);
    unsubscribe();
  }
}
