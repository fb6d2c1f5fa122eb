/**
 * Which requests one script call may take: in a Redis Cluster those of one bucket, since a call
 * touches one slot; otherwise all of them, since most of what a call costs is the call itself.
 */
import type { RedisClient } from "../redis/connect.js";

/**
 * Splits items into groups that one call may take, runs a call for each, side by side, and puts the
 * answers into the order of the items.
 * @param bucketOf the bucket of an item
 * @param call answers each of its items, in order
 */
export async function inCalls<Item, Answer>(
  redis: RedisClient,
  items: readonly Item[],
  bucketOf: (item: Item) => number,
  call: (items: readonly Item[]) => Promise<readonly Answer[]>,
): Promise<Answer[]> {
  if (items.length === 0) return [];
  if (!redis.isCluster) return [...(await call(items))];
  const groups = new Map<number, number[]>();
  for (const [i, item] of items.entries()) {
    const bucket = bucketOf(item);
    const group = groups.get(bucket);
    if (group === undefined) groups.set(bucket, [i]);
    else group.push(i);
  }
  const answers: Answer[] = [];
  await Promise.all(
    [...groups.values()].map(async (positions) => {
      const some = positions.flatMap((i) => items.slice(i, i + 1));
      const said = await call(some);
      for (const [i, position] of positions.entries()) {
        const answer = said[i];
        if (answer === undefined) throw new TypeError("a call left an item unanswered");
        answers[position] = answer;
      }
    }),
  );
  return answers;
}
