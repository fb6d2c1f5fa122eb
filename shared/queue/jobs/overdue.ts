/** The typed wrapper of overdue.lua: finds jobs that have been due for some time. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list, text } from "../../redis/script.js";
import { bucketTag } from "../bucket-tag.js";
import type { DueJob } from "../pieces/later.js";
import { loadKeyOf } from "../pieces/load.js";

const script = defineScript(new URL("./overdue.lua", import.meta.url), (reply) => list(reply).map(text), {
  keys: ["load"],
  args: ["forMs", "most"],
});

/**
 * @param forMs how long the jobs have been due
 * @param most of each bucket, in a Cluster; else of all
 * @returns the oldest first, of each bucket
 */
export async function overdueJobs(redis: RedisClient, buckets: number, forMs: number, most: number): Promise<DueJob[]> {
  const byTag = new Map(Array.from({ length: buckets }, (_, bucket) => [bucketTag(bucket), bucket]));
  const loads = new Set([...byTag.values()].map((bucket) => loadKeyOf(redis, bucket)));
  const found = await Promise.all([...loads].map((load) => script(redis, { load }, { forMs, most })));
  const jobs: DueJob[] = [];
  for (const told of found) {
    for (let i = 0; i + 1 < told.length; i += 2) {
      const [tag = "", model = "", tenant = "", request = ""] = told[i]?.split(":") ?? [];
      const bucket = byTag.get(tag);
      if (bucket !== undefined) jobs.push({ job: { bucket, model, tenant, request }, run: Number(told[i + 1]) });
    }
  }
  return jobs;
}
