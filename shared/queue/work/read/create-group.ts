/** The typed wrapper of create-group.lua: creates the consumer group of a lane. */
import { defineScript, word } from "../../../redis/script.js";
import type { RedisClient } from "../../../redis/connect.js";
import type { Lane } from "../../address.js";
import { GROUP, laneKeys } from "../../keys.js";

const answers = ["created", "exists"] as const;

const script = defineScript(new URL("./create-group.lua", import.meta.url), (reply) => word(reply, answers), {
  keys: ["ready"],
  args: ["group"],
});

/**
 * Creates the lane's group if it is missing. A worker calls this when Redis reports that there is
 * no group.
 */
export async function createGroup(redis: RedisClient, lane: Lane): Promise<void> {
  await script(redis, laneKeys(lane), { group: GROUP });
}
