/** The work of a tensor model's lane: micro-batches. */
import type { LaneWork } from "../lane.js";
import type { ServingModel } from "../model/serving.js";
import type { ExecuteLimits } from "./execute.js";
import { runLane } from "./loop.js";
import type { Solitude } from "./solitude.js";

/** They run one by one, so a worker takes few at a time. */
const SUSPECTS_AT_ONCE = 16;

export function batchWork(
  model: ServingModel,
  { limits, solitude, maxRunsAlone }: { limits: ExecuteLimits; solitude: Solitude; maxRunsAlone: number },
): LaneWork {
  const capacity = Math.max(1, model.limits.maxBatchSize);
  return {
    model: model.name,
    batched: model.batched,
    maxIdleMs: model.maxIdleMs,
    suspectRoom: ({ suspects }) => SUSPECTS_AT_ONCE - suspects.length,
    accepts: ({ sequence }) => (sequence === undefined) === (model.maxIdleMs === undefined),
    room: ({ waiting }) => capacity - waiting.length,
    run: (parts, signal) => runLane({ ...parts, model, limits, solitude, maxRunsAlone }, signal),
  };
}
