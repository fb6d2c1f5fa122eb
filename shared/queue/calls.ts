/**
 * The requests that one script call may take. In a Redis Cluster a call takes the requests of one
 * bucket, because a call touches one slot. Otherwise a call takes all, because most of the cost is
 * the call itself.
 */
import type { RedisClient } from "../redis/connect.js";

/**
 * Splits items into groups that one call may take, runs a call for each group, side by side, and
 * returns the answers in the order of the items.
 * @param bucketOf the bucket of an item
 * @param call answers each item, in order
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
