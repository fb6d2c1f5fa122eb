/** The typed wrapper of read.lua: reads how a job stands. */
import { requestName, type RequestAddress } from "../address.js";
import { GROUP, jobKey, modelTag } from "../keys.js";
import { loadKeyOf } from "../pieces/load.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript } from "../../redis/script.js";
import { viewOf, type JobView } from "./view.js";

const script = defineScript(
  new URL("./read.lua", import.meta.url),
  (reply): JobView | undefined => (reply === null ? undefined : viewOf(reply)),
  {
    keys: ["record", "load"],
    args: ["base", "job", "group", "buckets"],
    durable: true,
  },
);

/**
 * @param job the address of the job's first request
 * @param buckets how many the deployment has
 * @returns undefined if there is no such job, or no longer
 */
export function readJob(redis: RedisClient, job: RequestAddress, buckets: number): Promise<JobView | undefined> {
  const keys = { record: jobKey(job), load: loadKeyOf(redis, job.bucket) };
  return script(redis, keys, { base: modelTag(job), job: requestName(job), group: GROUP, buckets });
}
