/** The typed wrappers of commit-steps.lua and commit-requests.lua: the one place where a step takes effect. */
import type { Delivery } from "#shared/contract/entry.js";
import type { StoredOutcome } from "#shared/contract/outcome.js";
import { GROUP, laneKeys, logKey, outcomeKey, sequenceKeys } from "#shared/keys.js";
import { defineScript, words, type Arg } from "#shared/redis/script.js";
import { chunks } from "#shared/chunks.js";
import { DEAD_LIMIT, type LaneQueue } from "./lane.js";
import { span } from "./span.js";

/** What becomes of the sequence's checkpoint; see commit-steps.lua. */
export type StateChange =
  { readonly action: "put"; readonly checkpoint: Buffer } | { readonly action: "keep" | "drop" | "fail" };

export interface Settlement {
  readonly delivery: Delivery;
  readonly outcome: StoredOutcome;
  /** Ignored for stateless requests. */
  readonly state: StateChange;
  /** Why the request is set aside, or undefined. */
  readonly deadReason: string | undefined;
}

const fates = ["committed", "superseded", "already", "lost"] as const;
export type Fate = (typeof fates)[number];

const commitSteps = defineScript(new URL("./commit-steps.lua", import.meta.url), words(fates));
const commitRequests = defineScript(new URL("./commit-requests.lua", import.meta.url), words(fates));

/** What one script call writes at most, unless a single step writes more: past that it would hold up everybody's renewals. */
const LIMITS = { bytes: 1_048_576, items: 1_000 };

/**
 * @param maxIdleMs of the lane's sequences; undefined where there are none.
 * @returns one fate per settlement, in order. Safe to repeat: what an earlier call did reads as `already`.
 */
export async function commit(
  queue: LaneQueue,
  settlements: readonly Settlement[],
  maxIdleMs: number | undefined,
): Promise<Fate[]> {
  // A generator's lane has both.
  const steps = settlements.filter(isStep);
  const requests = settlements.filter((settlement) => !isStep(settlement));
  const [ofSteps, ofRequests] = await Promise.all([
    inCalls(steps, (chunk) => commitStepChunk(queue, chunk, maxIdleMs)),
    inCalls(requests, (chunk) => commitRequestChunk(queue, chunk)),
  ]);
  return settlements.map((settlement) => (isStep(settlement) ? ofSteps : ofRequests).shift() ?? "lost");
}

interface StepSettlement extends Settlement {
  readonly delivery: Delivery & { readonly sequence: string };
}

function isStep(settlement: Settlement): settlement is StepSettlement {
  return settlement.delivery.sequence !== undefined;
}

async function inCalls<S extends Settlement>(
  settlements: readonly S[],
  call: (chunk: readonly S[]) => Promise<Fate[]>,
): Promise<Fate[]> {
  const bytesOf = ({ outcome, state }: Settlement) =>
    outcome.body.length + (state.action === "put" ? state.checkpoint.length : 0);
  return (await Promise.all(chunks(settlements, bytesOf, LIMITS).map(call))).flat();
}

function commitRequestChunk(queue: LaneQueue, settlements: readonly Settlement[]): Promise<Fate[]> {
  const { redis, lane, consumer } = queue;
  const { ready, runs, dead } = laneKeys(lane);
  const keys: string[] = [ready, runs, dead];
  const args: Arg[] = [GROUP, consumer, DEAD_LIMIT, ...span(entriesOf(settlements))];
  for (const { delivery, outcome, deadReason = "" } of settlements) {
    keys.push(outcomeKey(lane, delivery.request), ...logOf(queue, delivery));
    args.push(delivery.entry, outcome.kind, outcome.body, delivery.outcomeTtlMs, deadReason);
  }
  return commitRequests(redis, keys, args);
}

function commitStepChunk(
  queue: LaneQueue,
  settlements: readonly StepSettlement[],
  maxIdleMs: number | undefined,
): Promise<Fate[]> {
  if (maxIdleMs === undefined) throw new TypeError("a lane without sequences has no steps");
  const { redis, lane, consumer } = queue;
  const { ready, runs, live, dead } = laneKeys(lane);
  const keys: string[] = [ready, runs, live, dead];
  const args: Arg[] = [GROUP, consumer, maxIdleMs, DEAD_LIMIT, ...span(entriesOf(settlements))];
  for (const { delivery, outcome, state, deadReason = "" } of settlements) {
    const { seq, state: checkpoint, wait } = sequenceKeys(lane, delivery.sequence);
    keys.push(outcomeKey(lane, delivery.request), seq, checkpoint, wait, ...logOf(queue, delivery));
    args.push(delivery.entry, delivery.sequence, delivery.step, delivery.start ? 1 : 0);
    args.push(outcome.kind, outcome.body, delivery.outcomeTtlMs);
    args.push(state.action, state.action === "put" ? state.checkpoint : "", deadReason);
  }
  return commitSteps(redis, keys, args);
}

function logOf({ lane, streams }: LaneQueue, { request }: Delivery): string[] {
  return streams === true ? [logKey(lane, request)] : [];
}

function entriesOf(settlements: readonly Settlement[]): string[] {
  return settlements.map(({ delivery }) => delivery.entry);
}
