/** The typed wrapper of commit-requests.lua: commits stateless requests. */
import { defineScript, words, type Arg } from "../../redis/script.js";
import { requestName } from "../address.js";
import { GROUP } from "../keys.js";
import { laneArgs, laneTable, loadKeyOfLanes, type WorkerQueue } from "./lane.js";
import { limitsOfSetAside } from "../set-aside.js";
import { fates, type Fate, type Settlement } from "./settlement.js";

const script = defineScript(new URL("./commit-requests.lua", import.meta.url), words(fates), { durable: true });

/**
 * @param settlements of stateless requests, of lanes of one model; in a Redis Cluster, of one
 * bucket
 * @returns one fate per settlement, in order. Safe to repeat: what an earlier call did reads as
 * `already`.
 */
export function commitRequests(queue: WorkerQueue, settlements: readonly Settlement[]): Promise<Fate[]> {
  const { redis, consumer, streams = false } = queue;
  const { lanes, keys, numberOf } = laneTable(settlements.map(({ delivery }) => delivery));
  keys.push(loadKeyOfLanes(redis, lanes));
  const args: Arg[] = [GROUP, consumer, limitsOfSetAside(queue), streams ? 1 : 0];
  for (const { lane, oldest, newest } of lanes) args.push(...laneArgs(lane), oldest, newest);
  for (const { delivery, outcome, deadReason = "" } of settlements) {
    args.push(numberOf(delivery.lane), delivery.entry, requestName(delivery));
    args.push(outcome.kind, outcome.body, delivery.outcomeTtlMs, deadReason);
  }
  return script(redis, keys, args);
}
