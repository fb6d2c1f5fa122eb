/** Removes outcomes that were delivered and that no retry can ask for, many keys to a command, so that memory follows the load and not the TTL. */
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";

const EVERY_MS = 20;
const KEYS_PER_COMMAND = 1_000;

export class OutcomeSweeper {
  readonly #redis: RedisClient;
  #keys: string[] = [];

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  discard(key: string): void {
    this.#keys.push(key);
  }

  async sweepWhileOpen(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(EVERY_MS, signal);
      const keys = this.#keys;
      this.#keys = [];
      for (let i = 0; i < keys.length; i += KEYS_PER_COMMAND) {
        // Left alone after a failure: every outcome has a TTL.
        await this.#redis.unlink(keys.slice(i, i + KEYS_PER_COMMAND)).catch(() => 0);
      }
    }
  }
}
