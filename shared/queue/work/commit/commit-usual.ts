/**
 * The typed wrapper of commit-usual.lua, the short way of commit-steps.lua: which steps may take
 * it, and the facts that their sequences must have and get.
 */
import { defineScript, integer, list } from "../../../redis/script.js";
import type { Call } from "../../../redis/transaction.js";
import { requestName } from "../../address.js";
import { FAILED, type Delivery } from "../../entry.js";
import { GROUP } from "../../keys.js";
import { byLane, laneTable, type WorkerQueue } from "../lane.js";
import type { Given, Settlement } from "./settlement.js";

const script = defineScript(new URL("./commit-usual.lua", import.meta.url), (reply) => list(reply).map(integer), {
  keys: ["load", { ready: [] }],
  args: [
    "group",
    "consumer",
    "idle",
    "kept",
    "apart",
    { lanes: ["base", "pin", "oldest", "newest", "steps"] },
    { steps: ["entry", "request", "sequence", "step", "done", "start", "from", "version", "ttl", "body", "spent"] },
  ],
  durable: true,
});

const DAY_MS = 86_400_000;

/** What the commits of a model have in common. */
export interface CommitTerms {
  /** How long a sequence lives between its steps, in ms. */
  readonly maxIdleMs: number;
  /** Most checkpoints to keep of a sequence, including the newest. */
  readonly history: number;
  /** TTL of a new checkpoint, in ms. */
  readonly ttlMs: number;
}

/** A step whose sequence continues from the step's checkpoint. */
interface UsualStep extends Settlement {
  readonly delivery: Delivery & { readonly sequence: string };
  readonly state: Extract<Settlement["state"], { readonly action: "put" }>;
}

/**
 * Commits the steps that end in the usual way.
 * @param ahead the commands before the script in its transaction, which write the checkpoints and
 *   outcomes of all steps
 * @returns the committed steps: the others are as they were. Undefined if no step may end in this
 *   way; then no command has run
 */
export async function commitUsual<S extends Settlement>(
  queue: WorkerQueue,
  given: readonly Given<S>[],
  terms: CommitTerms,
  ahead: readonly Call[],
): Promise<ReadonlySet<Given<S>> | undefined> {
  const { redis, consumer, streams = false, shortScripts = true } = queue;
  const { maxIdleMs, history, ttlMs } = terms;
  // The checkpoints of a sequence that idles for longer need another TTL after each step.
  if (!shortScripts || streams || history !== 1 || ttlMs < maxIdleMs + DAY_MS) return undefined;
  const usual = given.flatMap((one) => {
    const { settlement, outcome } = one;
    return isUsual(settlement) ? [{ one, settlement, outcome, lane: settlement.delivery.lane }] : [];
  });
  if (usual.length === 0) return undefined;
  const groups = byLane(usual).map(([, some]) => some);
  const ordered = groups.flat();
  const table = laneTable(
    redis,
    ordered.map(({ settlement }) => settlement.delivery),
  );
  const left = await script(
    redis,
    { load: table.load, ready: table.ready },
    {
      group: GROUP,
      consumer,
      idle: maxIdleMs,
      kept: ttlMs,
      apart: usual.find(({ outcome }) => outcome.apart !== "")?.outcome.apart ?? "",
      lanes: table.lanes.map((lane, i) => ({ ...lane, steps: groups[i]?.length ?? 0 })),
      steps: ordered.map(({ settlement: { delivery, state, spent = "" }, outcome: { ttl, body } }) => {
        const { entry, sequence, step, number, from } = delivery;
        return {
          entry,
          request: requestName(delivery),
          sequence,
          step,
          done: step - 1,
          start: step + 1 - number,
          from,
          version: state.version,
          ttl,
          body,
          spent,
        };
      }),
    },
    ahead,
  );
  const refused = new Set(left);
  return new Set(ordered.filter((_, i) => !refused.has(i + 1)).map(({ one }) => one));
}

function isUsual(settlement: Settlement): settlement is UsualStep {
  const { delivery, state, outcome, deadReason } = settlement;
  const isResult = outcome.kind === "result" && outcome.body.length > 0 && deadReason === undefined;
  const { brief, end, from, sequence } = delivery;
  return isResult && brief && !end && from !== FAILED && sequence !== undefined && state.action === "put";
}
