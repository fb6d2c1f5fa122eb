/** The typed wrapper of release.lua: gives entries back, so that any worker may take them. */
import type { Delivery } from "../../entry.js";
import { GROUP, laneKeys } from "../../keys.js";
import { defineScript, integer } from "../../../redis/script.js";
import { loadKeyOf } from "../../pieces/load.js";
import { byLane, type WorkerQueue } from "../lane.js";

const script = defineScript(new URL("./release.lua", import.meta.url), integer, {
  keys: ["ready", "runs", "load"],
  args: ["group", "consumer", { entries: [] }],
});

/** @returns how many entries the script gave back */
export async function release({ redis, consumer }: WorkerQueue, deliveries: readonly Delivery[]): Promise<number> {
  const calls = byLane(deliveries).map(([lane, some]) => {
    const keys = { ...laneKeys(lane), load: loadKeyOf(redis, lane.bucket) };
    return script(redis, keys, { group: GROUP, consumer, entries: some.map(({ entry }) => entry) });
  });
  return (await Promise.all(calls)).reduce((sum, count) => sum + count, 0);
}
