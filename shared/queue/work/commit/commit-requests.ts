/** The typed wrapper of commit-requests.lua: commits stateless requests. */
import { defineScript, isReplyError, words, type Arg } from "../../../redis/script.js";
import { requestName } from "../../address.js";
import { GROUP } from "../../keys.js";
import { laneArgs, laneTable, loadKeyOfLanes, type WorkerQueue } from "../lane.js";
import { limitsOfSetAside } from "../../pieces/set-aside.js";
import { fates, givenOutcomes, inlineOutcomes, type Fate, type GivenOutcomes, type Settlement } from "./settlement.js";

const script = defineScript(new URL("./commit-requests.lua", import.meta.url), words(fates), { durable: true });

/**
 * @param settlements of stateless requests, of lanes of the same model; in a Redis Cluster, of the
 * same bucket
 * @returns a fate for each settlement, in order. Safe to repeat: the effects of an earlier call
 * read as `already`.
 */
export async function commitRequests(queue: WorkerQueue, settlements: readonly Settlement[]): Promise<Fate[]> {
  const { redis, consumer, streams = false } = queue;
  const { lanes, keys, numberOf } = laneTable(settlements.map(({ delivery }) => delivery));
  keys.push(loadKeyOfLanes(redis, lanes));
  const head: Arg[] = [GROUP, consumer, limitsOfSetAside(queue), streams ? 1 : 0];
  for (const { lane, oldest, newest } of lanes) head.push(...laneArgs(lane), oldest, newest);
  const call = ({ args, ahead }: GivenOutcomes) => {
    const rows = settlements.flatMap(({ delivery, deadReason = "" }, i) => {
      const outcome = args[i] ?? [];
      return [numberOf(delivery.lane), delivery.entry, requestName(delivery), ...outcome, deadReason];
    });
    return script(redis, keys, [...head, ...rows], ahead);
  };
  const outcomes = givenOutcomes(settlements, consumer);
  try {
    return await call(outcomes);
  } catch (error) {
    if (outcomes.ahead.length === 0 || !isReplyError(error, "OOM")) throw error;
    return call(inlineOutcomes(settlements));
  }
}
