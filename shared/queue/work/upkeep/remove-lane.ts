/** The typed wrapper of remove-lane.lua: removes an empty lane that no worker serves. */
import type { RedisClient } from "../../../redis/connect.js";
import { defineScript, word } from "../../../redis/script.js";
import type { Lane } from "../../address.js";
import { laneKeys } from "../../keys.js";

const answers = ["removed", "in-use"] as const;

const script = defineScript(new URL("./remove-lane.lua", import.meta.url), (reply) => word(reply, answers), {
  keys: ["ready", "queue", "runs", "reconciler"],
  args: [],
});

/** Safe to repeat. */
export async function removeLane(redis: RedisClient, lane: Lane): Promise<(typeof answers)[number]> {
  return script(redis, laneKeys(lane), {});
}
