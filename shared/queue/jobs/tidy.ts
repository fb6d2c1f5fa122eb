/**
 * The typed wrapper of tidy.lua: removes gone jobs from the index of a tenant, and ends jobs whose
 * requests have ended without them.
 */
import { parseRequestName, type RequestAddress } from "../address.js";
import { bucketTag } from "../bucket-tag.js";
import { jobsKey, jobTenantsKey } from "../keys.js";
import { loadKeyOf } from "../pieces/load.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text } from "../../redis/script.js";

export interface TidiedJobs {
  /** The first place of the next call; undefined at the end. */
  readonly next: number | undefined;
  /** The jobs that have not begun by their due time; a worker may be about to begin some. */
  readonly overdue: readonly RequestAddress[];
}

const script = defineScript(
  new URL("./tidy.lua", import.meta.url),
  (reply) => {
    const [next, overdue] = list(reply);
    return { next: integer(next), overdue: list(overdue).map(text) };
  },
  {
    keys: ["jobs", "tenants", "load"],
    args: ["tag", "tenant", "from", "most"],
  },
);

/**
 * @param from the first place, from 0
 * @param most places to look at
 */
export async function tidyJobs(
  redis: RedisClient,
  bucket: number,
  tenant: string,
  from: number,
  most: number,
): Promise<TidiedJobs> {
  const keys = { jobs: jobsKey(bucket, tenant), tenants: jobTenantsKey(bucket), load: loadKeyOf(redis, bucket) };
  const { next, overdue } = await script(redis, keys, { tag: bucketTag(bucket), tenant, from, most });
  return {
    next: next < 0 ? undefined : next,
    overdue: overdue.map((id) => {
      const end = id.indexOf(":");
      return { bucket, model: id.slice(0, end), ...parseRequestName(id.slice(end + 1)) };
    }),
  };
}
