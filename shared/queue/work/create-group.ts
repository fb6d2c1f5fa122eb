/** The typed wrapper of create-group.lua: makes the consumer group of a lane. */
import { defineScript, word } from "../../redis/script.js";
import type { RedisClient } from "../../redis/connect.js";
import type { Lane } from "../address.js";
import { GROUP, laneKeys } from "../keys.js";

const answers = ["created", "exists"] as const;

const script = defineScript(new URL("./create-group.lua", import.meta.url), (reply) => word(reply, answers));

/** Makes the lane's group where there is none. It is called when Redis says that there is none. */
export async function createGroup(redis: RedisClient, lane: Lane): Promise<void> {
  await script(redis, [laneKeys(lane).ready], [GROUP]);
}
