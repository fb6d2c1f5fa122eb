/** The typed wrapper of tidy.lua: forgets requests that workers have set aside too long ago. */
import { bucketTag } from "../bucket-tag.js";
import { setAsideKey } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer } from "../../redis/script.js";

const script = defineScript(new URL("./tidy.lua", import.meta.url), integer, {
  keys: ["noted"],
  args: ["tag", { models: [] }],
});

/**
 * @param models that may have such requests without a note
 * @returns how many models have such requests in the bucket
 */
export function tidyDeadRequests(redis: RedisClient, bucket: number, models: readonly string[]): Promise<number> {
  return script(redis, { noted: setAsideKey(bucket) }, { tag: bucketTag(bucket), models });
}
