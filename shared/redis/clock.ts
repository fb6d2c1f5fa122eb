/**
 * Redis's clocks as this process sees them. Deadlines are set and compared in the time of the
 * server that has their keys, so no two hosts' clocks are ever compared: in a Cluster each master
 * has a clock of its own. Between two readings the process's monotonic clock moves it on.
 */
import type { Redis } from "ioredis";
import { delay } from "../retry.js";
import { realWorld, type World } from "../world.js";
import { masterFor, mastersOf, type RedisClient } from "./connect.js";

/** The clock of one server. */
export class RedisClock {
  readonly #world: World;
  /** Redis ms minus `World.now()`; undefined until the first reading. */
  #offset: number | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  /** @param redisMs what Redis just said */
  observe(redisMs: number): void {
    this.#offset = redisMs - this.#world.now();
  }

  /**
   * A Redis time in ms as a time of `World.now()`; Infinity while Redis's clock is not known.
   */
  toLocal(redisMs: number): number {
    return this.#offset === undefined ? Infinity : redisMs - this.#offset;
  }

  /**
   * A time of `World.now()` as Redis ms, too early by up to the time that a reply takes; 0
   * while Redis's clock is not known.
   */
  toRedis(localMs: number): number {
    return this.#offset === undefined ? 0 : localMs + this.#offset;
  }
}

/** In a Cluster each master is asked for its time this often, in ms. */
const ASK_EVERY_MS = 1_000;

/** The clocks of all servers that have keys: of one, or of the masters of a Cluster. */
export class RedisClocks {
  readonly #redis: RedisClient;
  readonly #world: World;
  /** By the connection to the server: one that takes over has another one. */
  readonly #clocks = new WeakMap<Redis, RedisClock>();

  constructor(redis: RedisClient, world = realWorld) {
    this.#redis = redis;
    this.#world = world;
  }

  /** The clock of the server that has this key now. While nobody is known to, it tells nothing. */
  of(key: string): RedisClock {
    const server = masterFor(this.#redis, key);
    return server === undefined ? new RedisClock(this.#world) : this.#clockOf(server);
  }

  /**
   * Reads all clocks.
   * @throws the client's error where one cannot be read
   */
  async read(): Promise<void> {
    await Promise.all(mastersOf(this.#redis).map((server) => this.#read(server)));
  }

  /** Keeps the clocks of a Cluster's masters read until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    if (!this.#redis.isCluster) return; // the answers to beats tell the only one
    while (!signal.aborted) {
      // One that cannot be asked now has the clock that it had, or none yet.
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
 * The time of the server that has this key, in ms: what its scripts compare with.
 * @throws Error while no server is known to have it, or it cannot be asked
 */
export async function timeAt(redis: RedisClient, key: string): Promise<number> {
  const server = masterFor(redis, key);
  if (server === undefined) throw new Error("no master is known for the key");
  return msOf(await server.time());
}

/** @param time what TIME answers: seconds, and microseconds beside them */
function msOf([seconds, micros]: readonly (number | string)[]): number {
  return Number(seconds) * 1_000 + Number(micros) / 1_000;
}
