/** The typed wrapper of reap-idle.lua: removes sequences that have idled out. */
import { defineScript, integer } from "../../redis/script.js";
import { laneKeys } from "../keys.js";
import { laneArgs, type LaneQueue } from "./lane.js";

const script = defineScript(new URL("./reap-idle.lua", import.meta.url), integer);

/**
 * @param most sequences of the call
 * @param idleMs how long the model's sequences are kept idle
 * @returns how many it looked at; with fewer than `most`, none is left
 */
export function reapIdle({ redis, lane }: LaneQueue, most: number, idleMs: number): Promise<number> {
  const [base] = laneArgs(lane);
  return script(redis, [laneKeys(lane).live], [base, most, idleMs]);
}
