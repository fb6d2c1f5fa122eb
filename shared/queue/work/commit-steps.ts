/** The typed wrapper of commit-steps.lua: commits steps of sequences. */
import { defineScript, isReplyError, words, type Arg } from "../../redis/script.js";
import { requestName } from "../address.js";
import type { Delivery } from "../entry.js";
import { GROUP, versionKey } from "../keys.js";
import { laneArgs, laneTable, loadKeyOfLanes, type WorkerQueue } from "./lane.js";
import { limitsOfSetAside } from "../set-aside.js";
import { fates, type Fate, type Settlement } from "./settlement.js";
import { settingVersion, versionTtlMs, type Version } from "../version.js";
import { writeVersions } from "./write-version.js";

/** How a step of a sequence ends. */
export interface StepSettlement extends Settlement {
  readonly delivery: Delivery & { readonly sequence: string };
}

const script = defineScript(new URL("./commit-steps.lua", import.meta.url), words(fates), { durable: true });

/**
 * Writes the checkpoints and runs the script in one transaction. The checkpoints of a call that is
 * refused, or repeated, have names that nothing refers to.
 * @param settlements of lanes of one model; in a Redis Cluster, of one bucket
 * @param maxIdleMs how long a sequence is kept between its steps
 * @param history how many checkpoints of a sequence are kept, the newest included
 * @returns one fate per settlement, in order. Safe to repeat: what an earlier call did reads as
 * `already`.
 */
export async function commitSteps(
  queue: WorkerQueue,
  settlements: readonly StepSettlement[],
  maxIdleMs: number,
  history: number,
): Promise<Fate[]> {
  const { redis, consumer, streams = false } = queue;
  const { lanes, keys, numberOf } = laneTable(settlements.map(({ delivery }) => delivery));
  keys.push(loadKeyOfLanes(redis, lanes));
  const ttlMs = versionTtlMs(maxIdleMs);
  const args: Arg[] = [GROUP, consumer, maxIdleMs, limitsOfSetAside(queue), streams ? 1 : 0, history, ttlMs];
  for (const { lane, oldest, newest } of lanes) args.push(...laneArgs(lane), oldest, newest);
  const versions: Version[] = [];
  for (const { delivery, outcome, state, deadReason = "" } of settlements) {
    args.push(numberOf(delivery.lane), delivery.entry, requestName(delivery), delivery.sequence, delivery.step);
    args.push(delivery.start ? 1 : 0, outcome.kind, outcome.body, delivery.outcomeTtlMs);
    if (state.action !== "put") args.push(state.action, "", deadReason);
    // Nothing goes on from the state behind an END: what follows is a START.
    else if (delivery.end) args.push("drop", "", deadReason);
    else {
      args.push("put", state.version, deadReason);
      const key = versionKey(delivery, delivery.sequence, state.version);
      versions.push({ key, checkpoint: state.checkpoint, ttlMs });
    }
  }
  try {
    return await script(redis, keys, args, versions.map(settingVersion));
  } catch (error) {
    if (versions.length === 0 || !isReplyError(error, "OOM")) throw error;
    await writeVersions(redis, versions);
    return script(redis, keys, args);
  }
}
