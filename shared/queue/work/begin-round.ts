/** The typed wrapper of begin-round.lua: one worker at a time reconciles a lane. */
import { defineScript, word } from "../../redis/script.js";
import { laneKeys } from "../keys.js";
import type { LaneQueue } from "./lane.js";

const answers = ["begun", "taken"] as const;

const script = defineScript(new URL("./begin-round.lua", import.meta.url), (reply) => word(reply, answers));

/** Whether this worker is the one that reconciles the lane in this round. */
export async function beginRound({ redis, lane, consumer }: LaneQueue, roundMs: number): Promise<boolean> {
  return (await script(redis, [laneKeys(lane).reconciler], [consumer, roundMs])) === "begun";
}
