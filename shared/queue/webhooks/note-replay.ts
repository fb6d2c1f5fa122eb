/** The typed wrapper of note-replay.lua: notes that a client asks for a replay of a delivery. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { webhookKeys } from "../keys.js";

/** Most replays: of a delivery in all, of a delivery in a minute, and of a tenant in a minute. */
export const replayLimits = { delivery: 100, lately: 10, tenant: 1_000 };

const answers = ["granted", "unknown", "spent", "often", "tenant"] as const;

const script = defineScript(new URL("./note-replay.lua", import.meta.url), (reply) => word(reply, answers), {
  keys: ["delivery", "replays"],
  args: ["name", "most", "mostLately", "mostOfTenant"],
});

/** @param name of the request that asks: the call is safe to repeat under the same name */
export function noteReplay(
  redis: RedisClient,
  tenant: string,
  message: string,
  name: string,
): Promise<(typeof answers)[number]> {
  const keys = { delivery: webhookKeys.delivery(tenant, message), replays: webhookKeys.replays(tenant) };
  return script(redis, keys, {
    name,
    most: replayLimits.delivery,
    mostLately: replayLimits.lately,
    mostOfTenant: replayLimits.tenant,
  });
}
