/**
 * The answers that show a new key. A client that repeats its call under the same Idempotency-Key
 * gets the same key again, for a while. The answers are sealed, because Redis never has a key.
 */
import type { RedisClient } from "../../redis/connect.js";
import { ownerKeys } from "../keys.js";

/** How long an answer is kept, in ms. */
const KEPT_MS = 600_000;

export async function readKept(redis: RedisClient, name: string): Promise<string | undefined> {
  return (await redis.get(ownerKeys.kept(name))) ?? undefined;
}

/**
 * Keeps an answer, unless another call was faster.
 * @returns the answer that is kept
 */
export async function keepFirst(redis: RedisClient, name: string, answer: string): Promise<string> {
  const kept = await redis.set(ownerKeys.kept(name), answer, "PX", KEPT_MS, "NX");
  // The other call's answer can only be gone if this call took ten minutes.
  return kept === "OK" ? answer : ((await readKept(redis, name)) ?? answer);
}
