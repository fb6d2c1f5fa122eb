/**
 * The typed wrapper of tidy.lua: takes jobs that are gone out of the index of a tenant, and ends
 * those whose requests have ended without them.
 */
import { parseRequestName, type RequestAddress } from "../address.js";
import { bucketTag } from "../bucket-tag.js";
import { jobsKey, jobTenantsKey } from "../keys.js";
import { loadKeyOf } from "../load.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text } from "../../redis/script.js";

export interface TidiedJobs {
  /** Where to go on; undefined at the end. */
  readonly next: number | undefined;
  /** Those that were to be begun by now, and were not; a worker may be about to. */
  readonly overdue: readonly RequestAddress[];
}

const script = defineScript(new URL("./tidy.lua", import.meta.url), (reply) => {
  const [next, overdue] = list(reply);
  return { next: integer(next), overdue: list(overdue).map(text) };
});

/**
 * @param from the place with which it begins, from 0
 * @param most places that it looks at
 */
export async function tidyJobs(
  redis: RedisClient,
  bucket: number,
  tenant: string,
  from: number,
  most: number,
): Promise<TidiedJobs> {
  const keys = [jobsKey(bucket, tenant), jobTenantsKey(bucket), loadKeyOf(redis, bucket)];
  const { next, overdue } = await script(redis, keys, [bucketTag(bucket), tenant, from, most]);
  return {
    next: next < 0 ? undefined : next,
    overdue: overdue.map((id) => {
      const end = id.indexOf(":");
      return { bucket, model: id.slice(0, end), ...parseRequestName(id.slice(end + 1)) };
    }),
  };
}
