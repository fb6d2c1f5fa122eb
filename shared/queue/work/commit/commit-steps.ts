/** The typed wrapper of commit-steps.lua: commits steps of sequences. */
import { defineScript, isReplyError, words } from "../../../redis/script.js";
import { requestName } from "../../address.js";
import type { Delivery } from "../../entry.js";
import { GROUP, versionKey } from "../../keys.js";
import { laneTable, type WorkerQueue } from "../lane.js";
import { limitsOfSetAside } from "../../pieces/set-aside.js";
import type { Call } from "../../../redis/transaction.js";
import { commitUsual, type CommitTerms } from "./commit-usual.js";
import { fates, givenOutcomes, inlineOutcomes, type Fate, type Given, type Settlement } from "./settlement.js";
import { settingVersion, versionTtlMs, type Version } from "../../pieces/version.js";
import { writeVersions } from "./write-version.js";

/** How a step of a sequence ends. */
export interface StepSettlement extends Settlement {
  readonly delivery: Delivery & { readonly sequence: string };
}

const script = defineScript(new URL("./commit-steps.lua", import.meta.url), words(fates), {
  keys: ["load", { ready: [] }],
  args: [
    "group",
    "consumer",
    "idle",
    "limits",
    "streams",
    "history",
    "kept",
    { lanes: ["base", "pin", "oldest", "newest"] },
    {
      steps: [
        "lane",
        "entry",
        "request",
        "sequence",
        "number",
        "start",
        "kind",
        "body",
        "ttl",
        "apart",
        "action",
        "version",
        "reason",
        "spent",
      ],
    },
  ],
  durable: true,
});

/**
 * Writes the checkpoints and runs a script in a transaction. Each checkpoint has a name of its own,
 * so that a refused or repeated call does no harm.
 * @param settlements of lanes of the same model; in a Redis Cluster, of the same bucket
 * @param maxIdleMs how long a sequence lives between its steps
 * @param history most checkpoints to keep of a sequence, including the newest
 * @returns a fate for each settlement, in order. Safe to repeat: the effects of an earlier call
 * read as `already`.
 */
export async function commitSteps(
  queue: WorkerQueue,
  settlements: readonly StepSettlement[],
  maxIdleMs: number,
  history: number,
): Promise<Fate[]> {
  const terms = { maxIdleMs, history, ttlMs: versionTtlMs(maxIdleMs) };
  const versions = versionsOf(settlements, terms.ttlMs);
  const outcomes = givenOutcomes(settlements, queue.consumer);
  const ahead = [...versions.map(settingVersion), ...outcomes.ahead];
  try {
    const usual = await commitUsual(queue, outcomes.given, terms, ahead);
    if (usual === undefined) return await commitAny(queue, outcomes.given, terms, ahead);
    const others = outcomes.given.filter((one) => !usual.has(one));
    const fates = others.length === 0 ? [] : await commitAny(queue, others, terms, []);
    return outcomes.given.map((one) => (usual.has(one) ? "committed" : (fates.shift() ?? "lost")));
  } catch (error) {
    if (ahead.length === 0 || !isReplyError(error, "OOM")) throw error;
    await writeVersions(queue.redis, versions);
    return commitAny(queue, inlineOutcomes(settlements).given, terms, []);
  }
}

/** Commits steps however they end. */
function commitAny(
  queue: WorkerQueue,
  given: readonly Given<StepSettlement>[],
  { maxIdleMs, history, ttlMs }: CommitTerms,
  ahead: readonly Call[],
): Promise<Fate[]> {
  const { redis, consumer, streams = false } = queue;
  const { lanes, ready, load, numberOf } = laneTable(
    redis,
    given.map(({ settlement }) => settlement.delivery),
  );
  const stepOf = ({ settlement, outcome: { kind, body, ttl, apart } }: Given<StepSettlement>) => {
    const { delivery, deadReason: reason = "", spent = "" } = settlement;
    const { lane, entry, sequence, step, start } = delivery;
    const { action, version } = stateArgs(settlement);
    // A single literal: V8 takes microseconds for an object that two spreads make.
    return {
      lane: numberOf(lane),
      entry,
      request: requestName(delivery),
      sequence,
      number: step,
      start: start ? 1 : 0,
      action,
      version,
      reason,
      kind,
      body,
      ttl,
      apart,
      spent,
    };
  };
  const terms = {
    group: GROUP,
    consumer,
    idle: maxIdleMs,
    limits: limitsOfSetAside(queue),
    streams: streams ? 1 : 0,
    history,
    kept: ttlMs,
    lanes,
  };
  return script(redis, { load, ready }, { ...terms, steps: given.map(stepOf) }, ahead);
}

/** The action, and the version of its checkpoint. */
function stateArgs({ delivery, state }: StepSettlement): { readonly action: string; readonly version: string } {
  if (state.action !== "put") return { action: state.action, version: "" };
  // Nothing continues from the state behind an END: the next step is a START.
  return delivery.end ? { action: "drop", version: "" } : { action: "put", version: state.version };
}

function versionsOf(settlements: readonly StepSettlement[], ttlMs: number): Version[] {
  return settlements.flatMap(({ delivery, state }) => {
    if (state.action !== "put" || delivery.end) return [];
    const key = versionKey(delivery, delivery.sequence, state.version);
    return [{ key, checkpoint: state.checkpoint, ttlMs }];
  });
}
