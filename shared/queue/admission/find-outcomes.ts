/**
 * The typed wrapper of find-outcomes.lua: asks for many requests at once which of them have ended.
 * Other calls read the outcomes, which may be large.
 */
import { loadKey, loadKeyBeside } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list } from "../../redis/script.js";

/** `bytes` is about the length of the outcome's body; `brief` as in load.lua. */
export type Found =
  { readonly said: "no record" | "open" } | { readonly said: "ended"; readonly bytes: number; readonly brief: boolean };

const script = defineScript(new URL("./find-outcomes.lua", import.meta.url), (reply) => list(reply).map(read), {
  keys: ["load", { records: [] }],
  args: [],
});

/**
 * @param records their keys, all of the same slot
 * @returns a finding for each key, in order
 */
export function findOutcomes(redis: RedisClient, records: readonly string[]): Promise<Found[]> {
  const load = redis.isCluster ? loadKeyBeside(records[0] ?? "") : loadKey(undefined);
  return script(redis, { load, records }, {});
}

function read(reply: unknown): Found {
  const said = integer(reply);
  if (said === -2) return { said: "no record" };
  return said === -1 ? { said: "open" } : { said: "ended", bytes: Math.floor(said / 2), brief: said % 2 === 1 };
}
