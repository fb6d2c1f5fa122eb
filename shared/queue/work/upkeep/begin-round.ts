/** The typed wrapper of begin-round.lua: tasks that a single worker does at a time, in rounds. */
import { defineScript, word } from "../../../redis/script.js";
import type { RedisClient } from "../../../redis/connect.js";
import type { Lane } from "../../address.js";
import { hibernationKeys, laneKeys, registryKeys } from "../../keys.js";
import type { LaneQueue } from "../lane.js";

const answers = ["begun", "taken"] as const;

const script = defineScript(new URL("./begin-round.lua", import.meta.url), (reply) => word(reply, answers), {
  keys: ["task"],
  args: ["consumer", "roundMs"],
});

/** Whether this worker reconciles the lane in this round. */
export async function beginRound({ redis, lane, consumer }: LaneQueue, roundMs: number): Promise<boolean> {
  return (await script(redis, { task: laneKeys(lane).reconciler }, { consumer, roundMs })) === "begun";
}

/** Whether this worker moves states of this bucket to disk in this round. */
export async function beginHibernation(
  redis: RedisClient,
  where: Pick<Lane, "bucket" | "model">,
  worker: string,
  roundMs: number,
): Promise<boolean> {
  const args = { consumer: worker, roundMs: Math.ceil(roundMs) };
  return (await script(redis, { task: hibernationKeys(where).round }, args)) === "begun";
}

/** Whether this worker looks after retired pins in this round. */
export async function beginUpkeep(redis: RedisClient, worker: string, roundMs: number): Promise<boolean> {
  return (await script(redis, { task: registryKeys.upkeep }, { consumer: worker, roundMs })) === "begun";
}
