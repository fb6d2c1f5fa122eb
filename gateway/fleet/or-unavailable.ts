/** How a read of the fleet fails while the gateway cannot ask Redis. */
import { fixedError } from "#shared/errors.js";
import { dropIfSilent, type RedisClient } from "#shared/redis/connect.js";
import { isTransient } from "#shared/retry.js";

/** @throws InferenceError `unavailable` while the gateway cannot ask Redis */
export async function orUnavailable<T>(redis: RedisClient, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    dropIfSilent(redis, error);
    if (!isTransient(error)) throw error;
    throw fixedError("unavailable", "fleet", { cause: error });
  }
}
