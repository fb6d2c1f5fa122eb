/** The typed wrapper of release.lua. */
import type { Delivery } from "#shared/contract/entry.js";
import { GROUP, laneKeys } from "#shared/keys.js";
import { defineScript, integer } from "#shared/redis/script.js";
import { ownerKey, type LaneQueue } from "./lane.js";

const script = defineScript(new URL("./release.lua", import.meta.url), integer);

/** @returns how many went back. */
export async function release({ redis, lane, consumer }: LaneQueue, deliveries: readonly Delivery[]): Promise<number> {
  if (deliveries.length === 0) return 0;
  const { ready, runs } = laneKeys(lane);
  const owners = deliveries.map((delivery) => ownerKey(lane, delivery));
  return script(redis, [ready, runs, ...owners], [GROUP, consumer, ...deliveries.map(({ entry }) => entry)]);
}
