/** The typed wrapper of read-taken.lua: what a bucket has counted of quotas. */
import { defineScript, integer, list } from "../../redis/script.js";
import type { RedisClient } from "../../redis/connect.js";
import { loadKey } from "../keys.js";
import type { Load } from "../pieces/load.js";
import { quotaOf } from "../pieces/usage.js";

const script = defineScript(new URL("./read-taken.lua", import.meta.url), (reply) => list(reply).map(integer), {
  keys: ["load"],
  args: [{ quotas: ["name", "field"] }],
});

/**
 * @param bucket undefined outside of a Cluster
 * @param fields as `loadFieldOf` names quotas
 * @returns the counts as requests, whatever a quota counts
 */
export async function readTaken(
  redis: RedisClient,
  bucket: number | undefined,
  fields: readonly string[],
): Promise<Load[]> {
  const used = await script(redis, { load: loadKey(bucket) }, { quotas: fields.map(quotaOf) });
  return fields.map((field, i) => ({ field, requests: used[i] ?? 0, bytes: 0 }));
}
