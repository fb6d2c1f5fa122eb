/**
 * The only way in which a request that a worker holds takes effect: its outcome, and the checkpoint
 * of its sequence. Steps and stateless requests have a script each, in calls of bounded size.
 */
import { chunks } from "../../../chunks.js";
import { commitRequests } from "./commit-requests.js";
import { inCalls } from "../../calls.js";
import { commitSteps, type StepSettlement } from "./commit-steps.js";
import type { WorkerQueue } from "../lane.js";
import type { Fate, Settlement } from "./settlement.js";

/**
 * Most bytes and requests of a script call; a single larger step goes alone. A longer call would
 * delay the heartbeats of all workers.
 */
const LIMITS = { bytes: 1_048_576, items: 1_000 };

/**
 * @param settlements of lanes of the same model
 * @param maxIdleMs how long the model's sequences live between their steps; undefined if the model
 * has no sequences
 * @param history most checkpoints to keep of a sequence, including the newest
 * @returns a fate for each settlement, in order. Safe to repeat: the effects of an earlier call
 * read as `already`.
 */
export async function commit(
  queue: WorkerQueue,
  settlements: readonly Settlement[],
  maxIdleMs: number | undefined,
  history = 1,
): Promise<Fate[]> {
  // A generator has both: turns of conversations, and requests by themselves.
  const steps = settlements.filter(isStep);
  const requests = settlements.filter((settlement) => !isStep(settlement));
  const [ofSteps, ofRequests] = await Promise.all([
    commitAllSteps(queue, steps, maxIdleMs, history),
    inChunks(queue, requests, (chunk) => commitRequests(queue, chunk)),
  ]);
  return settlements.map((settlement) => (isStep(settlement) ? ofSteps : ofRequests).shift() ?? "lost");
}

async function commitAllSteps(
  queue: WorkerQueue,
  steps: readonly StepSettlement[],
  maxIdleMs: number | undefined,
  history: number,
): Promise<Fate[]> {
  if (steps.length === 0) return [];
  if (maxIdleMs === undefined) throw new TypeError("a model without sequences has no steps");
  return inChunks(queue, steps, (chunk) => commitSteps(queue, chunk, maxIdleMs, history));
}

function isStep(settlement: Settlement): settlement is StepSettlement {
  return settlement.delivery.sequence !== undefined;
}

async function inChunks<S extends Settlement>(
  { redis }: WorkerQueue,
  settlements: readonly S[],
  call: (chunk: readonly S[]) => Promise<Fate[]>,
): Promise<Fate[]> {
  const bytesOf = ({ outcome, state }: Settlement) =>
    outcome.body.length + (state.action === "put" ? state.checkpoint.length : 0);
  const inOneSlot = (some: readonly S[]) => inCalls(redis, some, ({ delivery }) => delivery.bucket, call);
  return (await Promise.all(chunks(settlements, bytesOf, LIMITS).map(inOneSlot))).flat();
}
