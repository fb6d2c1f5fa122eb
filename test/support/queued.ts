/**
 * Counts the requests in the queues of a Redis: requests that a worker may take or has taken, and
 * requests that wait for their turn in a sequence or for room.
 */
import type { Redis } from "ioredis";

const kinds = ["ready:*", "wait:*", "parked:*"];

export async function queued(redis: Redis): Promise<number> {
  const keys = (await Promise.all(kinds.map((kind) => redis.keys(kind)))).flat();
  const sizes = await Promise.all(keys.map((key) => sizeOf(redis, key)));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function sizeOf(redis: Redis, key: string): Promise<number> {
  const type = await redis.type(key);
  if (type === "stream") return redis.xlen(key);
  if (type === "list") return redis.llen(key);
  return type === "hash" ? redis.hlen(key) : 0;
}
