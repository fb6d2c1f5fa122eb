/**
 * The streams that are read at this gateway: live, late, resumed and recovered from a lost message, all by one function. Subscribe, read the log from the wanted
 * index, follow; silence is checked against the log.
 */
import type { Logger } from "pino";
import { encodeRequestId, type RequestAddress } from "#shared/contract/request-id.js";
import { tokenSubject, type Lane } from "#shared/keys.js";
import type { Bus } from "#shared/nats/connect.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { onlyTenant } from "../tenant.js";
import type { Attendance } from "./attendance.js";
import { Hub } from "./hub.js";
import { LogReader } from "./log-reader.js";

export interface RelaySettings {
  readonly redis: RedisClient;
  readonly bus: Bus;
  /** Whether the lane's requests are streams; undefined where nobody knows the model any more. */
  readonly isStream: (lane: Lane) => boolean | undefined;
  readonly attendance: Attendance;
  /** Told of each followed stream that has had its final record. */
  readonly onEnd: (address: RequestAddress) => void;
  readonly log: Logger;
}

interface Followed {
  readonly hub: Hub;
  /** Resolves when the server surely sends what is published from now on, or is too slow to say so. */
  readonly ready: Promise<void>;
  readonly unsubscribe: () => void;
  /** When the last reader was seen; a hub stays for a moment, since readers come back. */
  readAt: number;
}

/** Longest silence of NATS before the log is looked into: a message lost after the append is noticed within this. */
const SILENCE_MS = 500;
/** With NATS down there is no fast path. */
const POLL_MS = 40;
const TICK_MS = 20;
/** How long a hub without readers is kept. */
const LINGER_MS = 5_000;

export class Relay {
  readonly logs: LogReader;
  readonly attendance: Attendance;
  readonly isStream: (lane: Lane) => boolean | undefined;
  readonly #bus: Bus;
  readonly #onEnd: (address: RequestAddress) => void;
  readonly #log: Logger;
  /** By public id. A hub that is over is in it no longer. */
  readonly #followed = new Map<string, Followed>();

  constructor({ redis, bus, isStream, attendance, onEnd, log }: RelaySettings) {
    this.logs = new LogReader(redis);
    this.attendance = attendance;
    this.isStream = isStream;
    this.#bus = bus;
    this.#onEnd = onEnd;
    this.#log = log;
  }

  /** How many requests are followed. */
  get size(): number {
    return this.#followed.size;
  }

  /** Subscribes before the request is admitted, so that not even its first record waits for a look into the log. */
  async prepare(address: RequestAddress): Promise<void> {
    await this.#follow(address, 0).ready;
  }

  /** The request is in Redis. */
  admitted(address: RequestAddress): void {
    this.#followed.get(encodeRequestId(address))?.hub.begin();
  }

  /** It was refused. */
  forget(address: RequestAddress): void {
    const followed = this.#followed.get(encodeRequestId(address));
    if (followed !== undefined && !followed.hub.hasReaders) this.#close(followed);
  }

  /** The hub of a request that is followed already. */
  find(address: RequestAddress): Hub | undefined {
    return this.#followed.get(encodeRequestId(address))?.hub;
  }

  /** @param next as many records as the log held when the caller looked. */
  async follow(address: RequestAddress, next: number): Promise<Hub> {
    const known = this.find(address);
    if (known !== undefined) return known;
    const { hub, ready } = this.#follow(address, next);
    await ready;
    hub.begin();
    hub.look();
    return hub;
  }

  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(TICK_MS, signal);
      const now = performance.now();
      const silence = this.#bus.isUp() ? SILENCE_MS : POLL_MS;
      for (const followed of this.#followed.values()) {
        const { hub, readAt } = followed;
        if (hub.hasReaders) followed.readAt = now;
        if (hub.isOver || now - readAt > LINGER_MS) this.#close(followed);
        else hub.lookIfSilent(now, silence);
      }
    }
    for (const followed of this.#followed.values()) this.#close(followed);
  }

  #follow(address: RequestAddress, next: number): Followed {
    const id = encodeRequestId(address);
    const known = this.#followed.get(id);
    if (known !== undefined) return known;
    const isStream = () => this.isStream(address.lane);
    const hub = new Hub({ address, logs: this.logs, isStream, log: this.#log }, next);
    const subject = tokenSubject(onlyTenant, address.lane, address.request);
    const subscribing = this.#bus.subscribe(subject, (message) => hub.receive(message));
    const failed = (error: unknown) => {
      this.#log.warn({ error: String(error) }, "a stream is followed without NATS");
    };
    const followed: Followed = {
      hub,
      ready: subscribing.then(() => undefined, failed),
      unsubscribe: () => void subscribing.then((unsubscribe) => unsubscribe()).catch(() => undefined),
      readAt: performance.now(),
    };
    this.#followed.set(id, followed);
    return followed;
  }

  #close({ hub, unsubscribe }: Followed): void {
    this.#followed.delete(encodeRequestId(hub.address));
    if (hub.isOver && !hub.hasFailed) this.#onEnd(hub.address);
    unsubscribe();
  }
}
