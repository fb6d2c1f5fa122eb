/** The typed wrapper of reap-idle.lua: removes sequences that have idled out. */
import { defineScript, integer } from "../redis/script.js";
import { liveKey, modelTag } from "./keys.js";
import type { Lane } from "./address.js";
import type { RedisClient } from "../redis/connect.js";

const script = defineScript(new URL("./reap-idle.lua", import.meta.url), integer, {
  keys: ["live"],
  args: ["base", "most", "idleMs"],
});

/**
 * @param most sequences of the call
 * @param idleMs how long the model's sequences are kept idle; undefined if the caller does not know
 * @returns the number of sequences looked at; with fewer than `most`, none is left
 */
export function reapIdle(
  { redis, lane }: { readonly redis: RedisClient; readonly lane: Pick<Lane, "bucket" | "model"> },
  most: number,
  idleMs: number | undefined,
): Promise<number> {
  return script(redis, { live: liveKey(lane) }, { base: modelTag(lane), most, idleMs: idleMs ?? "" });
}
