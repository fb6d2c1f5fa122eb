/** The typed wrapper of reap-kept.lua: drops results past their time or over their budget. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer } from "../../redis/script.js";

const script = defineScript(new URL("./reap-kept.lua", import.meta.url), (reply) => integer(reply) === 1, {
  keys: ["load"],
  args: ["mostBytes", "most"],
});

/** Results that a call drops. Redis's only thread is busy with them for less than 1 ms. */
const AT_ONCE = 500;

/**
 * @param load from `loadKey`
 * @param mostBytes the most bytes of all results; -1 for no limit
 * @returns whether more results may be due
 */
export function reapKept(redis: RedisClient, load: string, mostBytes: number): Promise<boolean> {
  return script(redis, { load }, { mostBytes, most: AT_ONCE });
}
