/**
 * The runs of one request to an iterative model. A request that is to run again waits in the worker
 * like a request that has just arrived, so requests join and leave between two runs, and all that
 * are under way share batches.
 */
import { encodeCheckpoint, nameRun, type RunNames } from "#shared/contract/checkpoint.js";
import { InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { shapeKeyOf, type Batching, type Held } from "../lane/holdings.js";
import type { Iteration } from "../models/validate/iteration.js";

/** What a run leaves for the next run of its request. */
export interface Left {
  /** The states, under the names of their inputs. */
  readonly states: readonly Tensor[];
  /** @returns an output in the shape that clients know */
  readonly output: (name: string) => Tensor;
}

/** What decides over the next run, beside the outputs. */
export interface NextTerms {
  readonly batching: Batching;
  readonly maxStateBytes: number;
  readonly runs?: RunNames | undefined;
}

/**
 * Copies all that the next run needs.
 * @returns the request as its next run takes it; undefined after its last run
 * @throws InferenceError if the model asks for more runs or more memory than the request may have
 */
export function nextRun(
  held: Held,
  { again, feeds, most }: Iteration,
  { states, output }: Left,
  { batching, maxStateBytes, runs }: NextTerms,
): Held | undefined {
  if (output(again).data.every((byte) => byte === 0)) return undefined;
  const ran = held.ran + 1;
  if (ran >= most) {
    const runsText = `${ran} ${ran === 1 ? "run" : "runs"}, which is max_iterations`;
    throw new InferenceError("model_error", `output '${again}' still asks for another run after ${runsText}`);
  }
  const fed = feeds.map(({ output: from, input: name }) => ({ ...output(from), name }));
  const { frame, tensors } = encodeCheckpoint(nameRun(held.delivery.entry, runs), [...states, ...fed]);
  if (frame.length > maxStateBytes) {
    throw new InferenceError(
      "state_too_large",
      `what the request keeps between runs would exceed ${maxStateBytes} bytes`,
    );
  }
  const kept = tensors.slice(states.length);
  const inputs = held.request.tensors.map((tensor) => kept.find(({ name }) => name === tensor.name) ?? tensor);
  return {
    ...held,
    ran,
    request: { ...held.request, tensors: inputs },
    shapeKey: shapeKeyOf(inputs, batching),
    state: Promise.resolve({ kind: "found", tensors: tensors.slice(0, states.length) }),
  };
}
