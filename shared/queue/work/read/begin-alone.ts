/** The typed wrapper of begin-alone.lua: counts the runs of a suspect. */
import { GROUP, laneKeys } from "../../keys.js";
import { defineScript, word } from "../../../redis/script.js";
import type { Located, WorkerQueue } from "../lane.js";

const answers = ["run", "poison", "lost"] as const;

const script = defineScript(new URL("./begin-alone.lua", import.meta.url), (reply) => word(reply, answers), {
  keys: ["ready", "runs"],
  args: ["group", "consumer", "entry", "most", "run"],
});

/**
 * Counts a run of a suspect that is about to start by itself.
 * @param maxRuns the most such runs of a request
 * @param run names the run: the call is safe to repeat under the same name
 */
export function beginAlone({ redis, consumer }: WorkerQueue, { lane, entry }: Located, maxRuns: number, run: string) {
  return script(redis, laneKeys(lane), { group: GROUP, consumer, entry, most: maxRuns, run });
}
