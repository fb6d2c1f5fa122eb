/** The jobs that are to be queued later, as later.lua notes them, for who queues them. */
import type { RedisClient } from "../redis/connect.js";
import type { RequestAddress } from "./address.js";
import { bucketTag } from "./bucket-tag.js";
import { jobKey, laterKey } from "./keys.js";
import { loadKeyOf } from "./load.js";

/** In the outbox: somebody is to look at when a job is due. No webhook is told of it. */
export const DUE = "due";

/** A job, and which of its requests is the next one, as it was when this was noted. */
export interface DueJob {
  /** The address of its first request. */
  readonly job: RequestAddress;
  /** How many requests it has had. */
  readonly run: number;
}

/**
 * @param facts those of an entry of the outbox
 * @returns undefined for what no script has noted
 */
export function dueJobOf(bucket: number, facts: string): DueJob | undefined {
  try {
    const { job = "", run } = JSON.parse(facts) as { job?: string; run?: string };
    const [model, tenant, request] = job.split(":");
    if (model === undefined || tenant === undefined || request === undefined) return undefined;
    return { job: { bucket, model, tenant, request }, run: Number(run) };
  } catch {
    return undefined;
  }
}

/**
 * When a job is due.
 * @returns Redis ms; undefined where it does not wait, or not for this run
 */
export async function readDue(redis: RedisClient, { job, run }: DueJob): Promise<number | undefined> {
  const [next, made] = await redis.hmget(jobKey(job), "next", "made");
  const [at, after] = (next ?? "").split("|");
  return at !== "" && after === String(run) && made === after ? Number(at) : undefined;
}

/**
 * Reads which jobs have been due since before `before`, in Redis ms, the oldest first.
 * @param most of those that lie under one key
 */
export async function readOverdue(
  redis: RedisClient,
  buckets: number,
  before: number,
  most: number,
): Promise<DueJob[]> {
  const numbers = Array.from({ length: buckets }, (_, bucket) => bucket);
  const byTag = new Map(numbers.map((bucket) => [bucketTag(bucket), bucket]));
  const keys = new Set(numbers.map((bucket) => laterKey(loadKeyOf(redis, bucket))));
  const found = await Promise.all(
    [...keys].map(async (key) => {
      const members = await redis.zrange(key, "-inf", String(before), "BYSCORE", "LIMIT", 0, most);
      return Promise.all(
        members.map(async (member): Promise<DueJob[]> => {
          const [tag = "", model = "", tenant = "", request = ""] = member.slice(member.indexOf("|") + 1).split(":");
          const job = { bucket: byTag.get(tag) ?? 0, model, tenant, request };
          const made = await redis.hget(jobKey(job), "made");
          if (made !== null) return [{ job, run: Number(made) }];
          // Its record has gone, by somebody's hand. What is counted is put right by a recount.
          await redis.zrem(key, member);
          return [];
        }),
      );
    }),
  );
  return found.flat(2);
}
