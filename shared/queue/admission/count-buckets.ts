/** The typed wrapper of count-buckets.lua: what buckets have beside their queue. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list } from "../../redis/script.js";
import { callGroups } from "../../redis/slots.js";
import { eventsKey, setAsideKey } from "../keys.js";

export interface BucketCounts {
  /** Requests set aside. */
  readonly dead: number;
  /** Events that no jobs process has handled. */
  readonly events: number;
  /** How many sequences hibernate, in the order of the models; undefined if Redis may not say. */
  readonly hibernating: readonly (number | undefined)[];
}

const script = defineScript(
  new URL("./count-buckets.lua", import.meta.url),
  (reply): BucketCounts => {
    const [dead, events, hibernating] = list(reply);
    return { dead: integer(dead), events: integer(events), hibernating: list(hibernating).map(countOf) };
  },
  { keys: [{ buckets: ["noted", "events"] }], args: ["models"], readsOnly: true },
);

function countOf(reply: unknown): number | undefined {
  const count = integer(reply);
  return count < 0 ? undefined : count;
}

/**
 * The sums over some buckets, with one command for each slot.
 * @param models of which to count the hibernating sequences
 * @throws the client's error if Redis does not answer
 */
export async function countBuckets(
  redis: RedisClient,
  buckets: readonly number[],
  models: readonly string[],
): Promise<BucketCounts> {
  const names = models.map((model) => `${model} `).join("");
  const counted = await Promise.all(
    callGroups(redis, buckets, setAsideKey).map((some) =>
      script(
        redis,
        { buckets: some.map((bucket) => ({ noted: setAsideKey(bucket), events: eventsKey(bucket) })) },
        { models: names },
      ),
    ),
  );
  const sum = (valueOf: (one: BucketCounts) => number) => counted.reduce((all, one) => all + valueOf(one), 0);
  return {
    dead: sum(({ dead }) => dead),
    events: sum(({ events }) => events),
    hibernating: models.map((_, i) => {
      const counts = counted.map(({ hibernating }) => hibernating[i]);
      return counts.includes(undefined) ? undefined : sum(({ hibernating }) => hibernating[i] ?? 0);
    }),
  };
}
