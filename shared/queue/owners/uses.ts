/** When keys were used last. */
import type { RedisClient } from "../../redis/connect.js";
import { ownerKeys } from "../keys.js";

/** Keys of one call. */
const AT_ONCE = 500;

/** @param at Redis ms */
export async function writeUses(redis: RedisClient, ids: readonly string[], at: number): Promise<void> {
  for (let i = 0; i < ids.length; i += AT_ONCE) {
    await redis.hset(ownerKeys.used, ...ids.slice(i, i + AT_ONCE).flatMap((id) => [id, Math.floor(at)]));
  }
}

/** @returns Redis ms in the order of `ids`; undefined for a key that was never used */
export async function readUses(redis: RedisClient, ids: readonly string[]): Promise<(number | undefined)[]> {
  const uses: (number | undefined)[] = [];
  for (let i = 0; i < ids.length; i += AT_ONCE) {
    const found = await redis.hmget(ownerKeys.used, ...ids.slice(i, i + AT_ONCE));
    uses.push(...found.map((ms) => (ms === null ? undefined : Number(ms))));
  }
  return uses;
}
