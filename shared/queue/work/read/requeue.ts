/** The typed wrapper of requeue.lua: queues entries again that Redis would never deliver again. */
import { defineScript, integer } from "../../../redis/script.js";
import type { Delivery } from "../../entry.js";
import { GROUP, laneKeys } from "../../keys.js";
import { loadKeyOf } from "../../pieces/load.js";
import type { LaneQueue } from "../lane.js";

const script = defineScript(new URL("./requeue.lua", import.meta.url), integer, {
  keys: ["ready", "runs", "load"],
  args: ["group", { entries: [] }],
});

/**
 * @param deliveries candidates; the script checks each again
 * @returns how many entries the script queued again
 */
export function requeue({ redis, lane }: LaneQueue, deliveries: readonly Delivery[]): Promise<number> {
  const keys = { ...laneKeys(lane), load: loadKeyOf(redis, lane.bucket) };
  return script(redis, keys, { group: GROUP, entries: deliveries.map(({ entry }) => entry) });
}
