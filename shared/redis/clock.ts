/**
 * Redis's clocks as this process sees them. Processes set and compare a deadline in the time of the
 * server that has the deadline's keys, so Baton never compares the clocks of two hosts. In a
 * Cluster each master has a clock of its own. Between two readings the process's monotonic clock
 * advances the time.
 */
import type { Redis } from "ioredis";
import { delay } from "../retry.js";
import { realWorld, type World } from "../world.js";
import { masterFor, mastersOf, type RedisClient } from "./connect.js";

/** The clock of a server. */
export class RedisClock {
  readonly #world: World;
  /** Redis ms minus `World.now()`; undefined until the first reading. */
  #offset: number | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  /** @param redisMs Redis's time now */
  observe(redisMs: number): void {
    this.#offset = redisMs - this.#world.now();
  }

  /** A Redis time in ms as a time of `World.now()`; Infinity while Redis's clock is unknown. */
  toLocal(redisMs: number): number {
    return this.#offset === undefined ? Infinity : redisMs - this.#offset;
  }

  /**
   * A time of `World.now()` as Redis ms, too early by up to the duration of a reply; 0 while
   * Redis's clock is unknown.
   */
  toRedis(localMs: number): number {
    return this.#offset === undefined ? 0 : localMs + this.#offset;
  }
}

/** How often to ask each master of a Cluster for the time, in ms. */
const ASK_EVERY_MS = 1_000;

/** The clocks of all servers with keys: the single server, or the masters of a Cluster. */
export class RedisClocks {
  readonly #redis: RedisClient;
  readonly #world: World;
  /** By the connection to the server. A server that takes over has another connection. */
  readonly #clocks = new WeakMap<Redis, RedisClock>();

  constructor(redis: RedisClient, world = realWorld) {
    this.#redis = redis;
    this.#world = world;
  }

  /**
   * The clock of the server that has this key now. If the server is unknown, returns a clock
   * without a reading.
   */
  of(key: string): RedisClock {
    const server = masterFor(this.#redis, key);
    return server === undefined ? new RedisClock(this.#world) : this.#clockOf(server);
  }

  /**
   * Reads all clocks.
   * @throws the client's error if a clock cannot be read
   */
  async read(): Promise<void> {
    await Promise.all(mastersOf(this.#redis).map((server) => this.#read(server)));
  }

  /** Reads the clocks of a Cluster's masters regularly, until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    if (!this.#redis.isCluster) return; // a single server sends its time with the answers to beats
    while (!signal.aborted) {
      // A server that does not answer keeps its last reading, if there is one.
      if (this.#redis.status === "ready") {
        await Promise.allSettled(mastersOf(this.#redis).map((server) => this.#read(server)));
      }
      await delay(ASK_EVERY_MS, signal, this.#world);
    }
  }

  async #read(server: Redis): Promise<void> {
    this.#clockOf(server).observe(msOf(await server.time()));
  }

  #clockOf(server: Redis): RedisClock {
    const known = this.#clocks.get(server);
    if (known !== undefined) return known;
    const clock = new RedisClock(this.#world);
    this.#clocks.set(server, clock);
    return clock;
  }
}

/**
 * The time of the server that has this key, in ms: the time that its scripts use.
 * @throws Error if no server of the key is known, or the server does not answer
 */
export async function timeAt(redis: RedisClient, key: string): Promise<number> {
  const server = masterFor(redis, key);
  if (server === undefined) throw new Error("no master is known for the key");
  return msOf(await server.time());
}

/** @param time the answer to TIME: seconds and microseconds */
function msOf([seconds, micros]: readonly (number | string)[]): number {
  return Number(seconds) * 1_000 + Number(micros) / 1_000;
}
