/** The typed wrapper of requeue.lua: queues entries anew that nobody would ever deliver again. */
import { defineScript, integer } from "../../redis/script.js";
import type { Delivery } from "../entry.js";
import { GROUP, laneKeys } from "../keys.js";
import { loadKeyOf } from "../load.js";
import type { LaneQueue } from "./lane.js";

const script = defineScript(new URL("./requeue.lua", import.meta.url), integer);

/**
 * @param deliveries what looks as if nobody would ever deliver it again; the script looks once more
 * @returns how many were queued anew
 */
export function requeue({ redis, lane }: LaneQueue, deliveries: readonly Delivery[]): Promise<number> {
  const { ready, runs } = laneKeys(lane);
  return script(redis, [ready, runs, loadKeyOf(redis, lane.bucket)], [GROUP, ...deliveries.map(({ entry }) => entry)]);
}
