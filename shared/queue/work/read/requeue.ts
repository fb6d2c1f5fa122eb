/** The typed wrapper of requeue.lua: queues entries again that Redis would never deliver again. */
import { defineScript, integer } from "../../../redis/script.js";
import type { Delivery } from "../../entry.js";
import { GROUP, laneKeys } from "../../keys.js";
import { loadKeyOf } from "../../pieces/load.js";
import type { LaneQueue } from "../lane.js";

const script = defineScript(new URL("./requeue.lua", import.meta.url), integer);

/**
 * @param deliveries candidates; the script checks each again
 * @returns how many entries the script queued again
 */
export function requeue({ redis, lane }: LaneQueue, deliveries: readonly Delivery[]): Promise<number> {
  const { ready, runs } = laneKeys(lane);
  return script(redis, [ready, runs, loadKeyOf(redis, lane.bucket)], [GROUP, ...deliveries.map(({ entry }) => entry)]);
}
