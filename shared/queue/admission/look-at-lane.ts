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
}

const script = defineScript(
  new URL("./look-at-lane.lua", import.meta.url),
  (reply): LaneLook => {
    const [ready, running, parked, since] = list(reply);
    const oldest = text(since);
    return {
      ready: integer(ready),
      running: integer(running),
      parked: integer(parked),
      oldestAt: oldest === "" ? undefined : Number(oldest),
    };
  },
  { keys: ["ready", "parked"], args: ["group"], readsOnly: true },
);

/** @throws the client's error if Redis does not answer */
export function lookAtLane(redis: RedisClient, lane: Lane): Promise<LaneLook> {
  return script(redis, laneKeys(lane), { group: GROUP });
}
