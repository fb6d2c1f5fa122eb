/** The typed wrapper of reap-consumers.lua: forgets the consumers of workers that are gone. */
import { defineScript, integer } from "../../redis/script.js";
import { GROUP, laneKeys } from "../keys.js";
import type { LaneQueue } from "./lane.js";

const script = defineScript(new URL("./reap-consumers.lua", import.meta.url), integer);

/** @returns how many consumers were forgotten. */
export function reapConsumers({ redis, lane }: LaneQueue, idleMs: number): Promise<number> {
  return script(redis, [laneKeys(lane).ready], [GROUP, idleMs]);
}
