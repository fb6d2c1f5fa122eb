/** Which worker holds which steps, from the consumer groups of Redis. */
import type { Redis } from "ioredis";

/** How many steps each worker owns, by its name in the groups of the ready streams. */
export async function heldBy(redis: Redis): Promise<Map<string, number>> {
  const held = new Map<string, number>();
  for (const stream of await redis.keys("ready:*")) {
    for (const group of (await redis.xinfo("GROUPS", stream)) as unknown[][]) {
      const name = String(group[group.indexOf("name") + 1]);
      const [, , , consumers] = (await redis.xpending(stream, name)) as [number, unknown, unknown, [string, string][]?];
      for (const [consumer, count] of consumers ?? []) held.set(consumer, (held.get(consumer) ?? 0) + Number(count));
    }
  }
  return held;
}
