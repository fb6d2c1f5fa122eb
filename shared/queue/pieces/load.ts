/** The counts of the queue, which load.lua keeps, read with plain commands. */
import { bucketTag } from "../bucket-tag.js";
import { loadKey } from "../keys.js";
import { load } from "../../records/counts.js";
import type { RedisClient } from "../../redis/connect.js";

export interface LoadSum {
  readonly requests: number;
  readonly bytes: number;
}

/** The counts of one field: `m:<model>`, `t:<tenant>`, `s:<model>` (sequences) or `all`. */
export interface Load extends LoadSum {
  readonly field: string;
}

/** The key of the counts for the requests of a bucket. */
export function loadKeyOf(redis: Pick<RedisClient, "isCluster">, bucket: number): string {
  return loadKey(redis.isCluster ? bucket : undefined);
}

/**
 * @param bucket undefined outside of a Cluster
 * @param fields as in `Load`; `s:<model>` counts the live sequences of the bucket
 */
export async function readLoads(
  redis: RedisClient,
  bucket: number | undefined,
  fields: readonly string[],
): Promise<Load[]> {
  const sequences = fields.filter((field) => field.startsWith("s:"));
  const [texts, ...counts] = await Promise.all([
    redis.hmget(loadKey(bucket), ...fields),
    ...sequences.map((field) => redis.zcard(`live:${bucketTag(bucket ?? 0)}:${field.slice(2)}`)),
  ]);
  return fields.map((field, i) => {
    const counted = sequences.indexOf(field);
    return counted === -1 ? loadOf(field, texts[i]) : { field, requests: counts[counted] ?? 0, bytes: 0 };
  });
}

/** All counts: of all models and tenants, and of kept results. */
export async function readAllLoads(redis: RedisClient, bucket: number | undefined): Promise<Load[]> {
  return Object.entries(await redis.hgetall(loadKey(bucket))).map(([field, value]) => loadOf(field, value));
}

/**
 * All counts over the buckets, by field.
 * @param away buckets that no server answers for now
 * @throws the client's error if a server does not answer
 */
export async function readLoadSums(
  redis: RedisClient,
  buckets: number,
  away: ReadonlySet<number>,
): Promise<ReadonlyMap<string, LoadSum>> {
  const asked = Array.from({ length: buckets }, (_, bucket) => bucket).filter((bucket) => !away.has(bucket));
  const keys = redis.isCluster ? asked : [undefined];
  const loads = (await Promise.all(keys.map((bucket) => readAllLoads(redis, bucket)))).flat();
  const sums = new Map<string, LoadSum>();
  for (const { field, requests, bytes } of loads) {
    const sum = sums.get(field) ?? { requests: 0, bytes: 0 };
    sums.set(field, { requests: sum.requests + requests, bytes: sum.bytes + bytes });
  }
  return sums;
}

function loadOf(field: string, text: string | null | undefined): Load {
  const { items: requests, bytes } = load.read(text ?? "") ?? { items: 0, bytes: 0 };
  return { field, requests, bytes };
}
