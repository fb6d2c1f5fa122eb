/** The typed wrapper of take.lua: takes new entries from several lanes at once. */
import { GROUP } from "../../keys.js";
import type { RedisClient } from "../../../redis/connect.js";
import { defineScript } from "../../../redis/script.js";
import { ofStreams, type LanesByKey, type Taken } from "../stream.js";

const script = defineScript(new URL("./take.lua", import.meta.url), (reply) => reply, {
  keys: [{ ready: [] }],
  args: ["group", "consumer", "most"],
});

/**
 * @param lanes in the order in which to read them; in a Redis Cluster, all of the same bucket
 * @param most the most entries in all
 */
export async function take(redis: RedisClient, consumer: string, lanes: LanesByKey, most: number): Promise<Taken> {
  return ofStreams(lanes, await script(redis, { ready: [...lanes.keys()] }, { group: GROUP, consumer, most }));
}
