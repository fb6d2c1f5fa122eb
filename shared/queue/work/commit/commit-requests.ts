/** The typed wrapper of commit-requests.lua: commits stateless requests. */
import { defineScript, isReplyError, words } from "../../../redis/script.js";
import { requestName } from "../../address.js";
import { GROUP } from "../../keys.js";
import { laneTable, type WorkerQueue } from "../lane.js";
import { limitsOfSetAside } from "../../pieces/set-aside.js";
import {
  fates,
  givenOutcomes,
  inlineOutcomes,
  type Fate,
  type GivenOutcomes,
  type Given,
  type Settlement,
} from "./settlement.js";

const script = defineScript(new URL("./commit-requests.lua", import.meta.url), words(fates), {
  keys: ["load", { ready: [] }],
  args: [
    "group",
    "consumer",
    "limits",
    "streams",
    { lanes: ["base", "pin", "oldest", "newest"] },
    { requests: ["lane", "entry", "name", "kind", "body", "ttl", "apart", "reason", "spent"] },
  ],
  durable: true,
});

/**
 * @param settlements of stateless requests, of lanes of the same model; in a Redis Cluster, of the
 * same bucket
 * @returns a fate for each settlement, in order. Safe to repeat: the effects of an earlier call
 * read as `already`.
 */
export async function commitRequests(queue: WorkerQueue, settlements: readonly Settlement[]): Promise<Fate[]> {
  const { redis, consumer, streams = false } = queue;
  const { lanes, ready, load, numberOf } = laneTable(
    redis,
    settlements.map(({ delivery }) => delivery),
  );
  const requestOf = ({ settlement, outcome }: Given<Settlement>) => {
    const { delivery, deadReason: reason = "", spent = "" } = settlement;
    const { kind, body, ttl, apart } = outcome;
    const { lane, entry } = delivery;
    return { lane: numberOf(lane), entry, name: requestName(delivery), reason, kind, body, ttl, apart, spent };
  };
  const terms = { group: GROUP, consumer, limits: limitsOfSetAside(queue), streams: streams ? 1 : 0, lanes };
  const call = ({ given, ahead }: GivenOutcomes<Settlement>) =>
    script(redis, { load, ready }, { ...terms, requests: given.map(requestOf) }, ahead);
  const outcomes = givenOutcomes(settlements, consumer);
  try {
    return await call(outcomes);
  } catch (error) {
    if (outcomes.ahead.length === 0 || !isReplyError(error, "OOM")) throw error;
    return call(inlineOutcomes(settlements));
  }
}
