/** The typed wrapper of look-at-lane.lua: what a lane holds. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text } from "../../redis/script.js";
import type { Lane } from "../address.js";
import { GROUP, laneKeys } from "../keys.js";

export interface LaneLook {
  /** Entries of the ready stream that no worker has. */
  readonly ready: number;
  readonly running: number;
  readonly parked: number;
  /** Redis ms of the admission of the oldest request that waits; undefined if none is known. */
  readonly oldestAt: number | undefined;
  /** Parked requests by priority level, from level 1 on; empty without levels. */
  readonly levels: readonly number[];
}

const script = defineScript(
  new URL("./look-at-lane.lua", import.meta.url),
  (reply): LaneLook => {
    const [ready, running, parked, since, levels] = list(reply);
    const oldest = text(since);
    return {
      ready: integer(ready),
      running: integer(running),
      parked: integer(parked),
      oldestAt: oldest === "" ? undefined : Number(oldest),
      levels: list(levels).map(integer),
    };
  },
  { keys: ["ready", "parked", "queue"], args: ["group", "levels"], readsOnly: true },
);

/**
 * @param levels the priority levels of the model; 0 for none
 * @throws the client's error if Redis does not answer
 */
export function lookAtLane(redis: RedisClient, lane: Lane, levels: number): Promise<LaneLook> {
  return script(redis, laneKeys(lane), { group: GROUP, levels });
}
