/** What clients have used, read with plain commands. usage.lua writes it. */
import { usage, usagePair } from "../../records/usage.js";
import type { Values } from "../../records/record.js";
import type { RedisClient } from "../../redis/connect.js";
import { loadKey, spentKey, usageKey } from "../keys.js";

export type UsageSums = Values<(typeof usage)["fields"]>;

/** What a key has used of a model in a day. */
export interface UsedPair {
  /** Id of the key, or `NO_KEY`; `other` for the rest of a day with very many keys and models. */
  readonly key: string;
  readonly model: string;
  readonly sums: UsageSums;
}

/** Names of one read. */
const AT_ONCE = 1_000;

/**
 * @param buckets how many the deployment has; outside of a Cluster they have common sums
 * @param day a UTC day, such as 2026-11-28
 */
export async function readUsage(redis: RedisClient, buckets: number, tenant: string, day: string): Promise<UsedPair[]> {
  const loads = loadKeys(redis, buckets);
  const hashes = await Promise.all(loads.map((load) => redis.hgetall(usageKey(load, tenant, day))));
  return hashes.flatMap((hash) =>
    Object.entries(hash).flatMap(([pair, text]) => {
      const [sums, of] = [usage.read(text), usagePair.read(pair)];
      return sums === undefined || of === undefined ? [] : [{ ...of, sums }];
    }),
  );
}

/** @param month a UTC month, such as 2026-11 @returns the tenants that have used anything */
export async function readUsers(redis: RedisClient, buckets: number, month: string): Promise<string[]> {
  const tenants = new Set<string>();
  for (const load of loadKeys(redis, buckets)) {
    let cursor = "0";
    do {
      const [next, found] = await redis.hscan(spentKey(load, month), cursor, "MATCH", "t:*", "COUNT", AT_ONCE);
      for (let i = 0; i < found.length; i += 2) tenants.add(found[i]?.slice(2) ?? "");
      cursor = next;
    } while (cursor !== "0");
  }
  return [...tenants];
}

function loadKeys(redis: RedisClient, buckets: number): string[] {
  return redis.isCluster ? Array.from({ length: buckets }, (_, bucket) => loadKey(bucket)) : [loadKey(undefined)];
}
