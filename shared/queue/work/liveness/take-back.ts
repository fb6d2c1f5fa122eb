/** The typed wrapper of take-back.lua: gives a worker its own entries again. */
import { GROUP, laneKeys } from "../../keys.js";
import { defineScript, isReplyError, list } from "../../../redis/script.js";
import type { LaneQueue } from "../lane.js";
import { entries, type Taken } from "../stream.js";

const script = defineScript(new URL("./take-back.lua", import.meta.url), list, {
  keys: ["ready"],
  args: ["group", "consumer", { entries: [] }],
});

/** @param given entries that this worker has given up; entries of another worker stay there */
export async function takeBack({ redis, lane, consumer }: LaneQueue, given: readonly string[]): Promise<Taken> {
  try {
    return entries(lane, await script(redis, laneKeys(lane), { group: GROUP, consumer, entries: given }));
  } catch (error) {
    // Redis came back empty: the lane's stream is gone, with its entries.
    if (!isReplyError(error, "NOGROUP")) throw error;
    return { deliveries: [], unreadable: [] };
  }
}
