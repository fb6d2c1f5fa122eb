/** The typed wrapper of reap-consumers.lua: forgets the consumers of processes that are gone. */
import type { RedisClient } from "../redis/connect.js";
import { defineScript, integer } from "../redis/script.js";

const script = defineScript(new URL("./reap-consumers.lua", import.meta.url), integer, {
  keys: ["stream"],
  args: ["group", "idleMs"],
});

/**
 * @param idleMs after which a consumer counts as gone
 * @returns how many consumers are forgotten
 */
export function reapConsumers(redis: RedisClient, stream: string, group: string, idleMs: number): Promise<number> {
  return script(redis, { stream }, { group, idleMs });
}
