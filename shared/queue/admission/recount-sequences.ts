/** The typed wrapper of recount-sequences.lua: repairs the counts of sequences. */
import { bucketTag } from "../bucket-tag.js";
import { heldKey, loadTurnKey } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer } from "../../redis/script.js";

const script = defineScript(new URL("./recount-sequences.lua", import.meta.url), integer, {
  keys: ["held", "turn"],
  args: ["tag", "everyMs", { models: [] }],
});

/**
 * Counts again, unless a process has done so less than `everyMs` ago.
 * @param models that may have sequences
 * @returns how many counts were wrong
 */
export function recountSequences(
  redis: RedisClient,
  bucket: number,
  models: readonly string[],
  everyMs: number,
): Promise<number> {
  const held = heldKey(bucket);
  return script(redis, { held, turn: loadTurnKey(held) }, { tag: bucketTag(bucket), everyMs, models });
}
