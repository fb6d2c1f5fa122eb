/** The typed wrapper of begin-alone.lua. */
import { GROUP, laneKeys } from "#shared/keys.js";
import { defineScript, word } from "#shared/redis/script.js";
import type { LaneQueue } from "./lane.js";

const script = defineScript(new URL("./begin-alone.lua", import.meta.url), (reply) =>
  word(reply, ["run", "poison", "lost"]),
);

/** Counts a run of a suspect that is about to start by itself, at most `maxRuns` times. @param run names the run: safe to repeat under the same name. */
export function beginAlone({ redis, lane, consumer }: LaneQueue, entry: string, maxRuns: number, run: string) {
  const { ready, runs } = laneKeys(lane);
  return script(redis, [ready, runs], [GROUP, consumer, entry, maxRuns, run]);
}
