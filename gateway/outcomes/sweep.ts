/**
 * Removes outcomes that their clients have received and that no retry can ask for, many keys to a
 * command. So Redis' memory follows the load, and not the TTL of outcomes.
 */
import type { RedisClient } from "#shared/redis/connect.js";
import { callGroups } from "#shared/redis/slots.js";
import { delay } from "#shared/retry.js";
import { realWorld, type World } from "#shared/world.js";

const EVERY_MS = 20;
const KEYS_PER_COMMAND = 1_000;

export class OutcomeSweeper {
  readonly #redis: RedisClient;
  readonly #world: World;
  #keys: string[] = [];

  constructor(redis: RedisClient, world = realWorld) {
    this.#redis = redis;
    this.#world = world;
  }

  /** @param key Redis key of an outcome that no client will ask for again */
  discard(key: string): void {
    this.#keys.push(key);
  }

  /** Runs until `signal` aborts. */
  async sweepWhileOpen(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(EVERY_MS, signal, this.#world);
      const keys = this.#keys;
      this.#keys = [];
      for (const some of callGroups(this.#redis, keys, (key) => key)) {
        for (let i = 0; i < some.length; i += KEYS_PER_COMMAND) {
          // A failure needs no repair, because every outcome has a TTL.
          await this.#redis.unlink(some.slice(i, i + KEYS_PER_COMMAND)).catch(() => 0);
        }
      }
    }
  }
}
