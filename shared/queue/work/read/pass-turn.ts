/** The typed wrapper of pass-turn.lua: passes the turn of a model on, or renews it. */
import type { RedisClient } from "../../../redis/connect.js";
import { defineScript, text } from "../../../redis/script.js";
import { GROUP } from "../../keys.js";

const script = defineScript(new URL("./pass-turn.lua", import.meta.url), text, {
  keys: ["turn"],
  args: ["group", "consumer", "entry", "to"],
});

/**
 * @param entry the turn as the caller has it
 * @param to "caller" renews the turn
 * @returns the turn's new entry; undefined if the caller does not have the turn
 */
export async function passTurn(
  redis: RedisClient,
  turn: string,
  { consumer, entry, to }: { readonly consumer: string; readonly entry: string; readonly to: "next" | "caller" },
): Promise<string | undefined> {
  const said = await script(redis, { turn }, { group: GROUP, consumer, entry, to });
  return said === "" ? undefined : said;
}
