/** The typed wrapper of abandon.lua. */
import { GROUP, laneKeys } from "#shared/keys.js";
import { defineScript, integer } from "#shared/redis/script.js";
import type { LaneQueue } from "./lane.js";

const script = defineScript(new URL("./abandon.lua", import.meta.url), integer);

/** Longer than any lease. */
const LONG_IDLE_MS = 3_600_000;

/** @param silentMs a worker that was heard of since is left alone. @returns how many entries the worker leaves behind. */
export function abandon({ redis, lane, consumer }: LaneQueue, silentMs = 0): Promise<number> {
  return script(redis, [laneKeys(lane).ready], [GROUP, consumer, LONG_IDLE_MS, silentMs]);
}
