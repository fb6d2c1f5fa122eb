/**
 * Answers that are kept for clients that repeat their call under the same Idempotency-Key. The
 * first answer stays, so all calls under a key have the same one.
 */
import type { RedisClient } from "../redis/connect.js";

/** How long an answer is kept, in ms. */
export const KEPT_MS = 600_000;

export async function readKept(redis: RedisClient, key: string): Promise<string | undefined> {
  return (await redis.get(key)) ?? undefined;
}

/**
 * Keeps an answer, unless another call was faster.
 * @returns the answer that is kept
 */
export async function keepFirst(redis: RedisClient, key: string, answer: string): Promise<string> {
  const kept = await redis.set(key, answer, "PX", KEPT_MS, "NX");
  // The other call's answer can only be gone if this call took ten minutes.
  return kept === "OK" ? answer : ((await readKept(redis, key)) ?? answer);
}

/** Keeps an answer in the place of the one before. */
export async function keepAnew(redis: RedisClient, key: string, answer: string): Promise<void> {
  await redis.set(key, answer, "PX", KEPT_MS);
}

/** Forgets the answer of a call that had no effect, so that a client may ask again. */
export async function dropKept(redis: RedisClient, key: string): Promise<void> {
  await redis.unlink(key);
}
