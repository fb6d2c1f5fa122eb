/**
 * The ends of requests: settlements for the queue, or results for the ensemble that called the
 * model.
 */
import { encodeCheckpoint, nameRun, type RunNames } from "#shared/contract/checkpoint.js";
import { outcomeOf, stepMeta, storeOutcome } from "#shared/contract/outcome.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { encodeFrame, type Tensor } from "#shared/frame.js";
import type { RunTimes } from "../lane/counts.js";
import type { Held, StepCall } from "../lane/holdings.js";
import type { Settled } from "../lane/settle.js";
import { spentOf } from "../lane/spent.js";
import { withoutPaths } from "../onnx/error-text.js";

/** Writes the timings of a request of a batch; undefined if outcomes say none. */
export type NoteOf = (held: Held) => string | undefined;

export interface EndLimits {
  /**
   * Most bytes of a checkpoint. Redis's only thread writes it, and all other clients wait
   * meanwhile.
   */
  readonly maxStateBytes: number;
  /** Names the runs of a worker that shares its process with other workers, in a simulation. */
  readonly runs?: RunNames;
}

/** What a request leaves after its last run. */
export interface LastRun {
  /** The states, under the names of their inputs; empty for a model without states. */
  readonly states: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  /** The last record of a request with any number of answers; undefined for a request with one. */
  readonly record?: string | undefined;
  /** The times of all runs of the request. */
  readonly run: RunTimes;
  /** The request's share of the model's time in the last run, in ms. */
  readonly shareMs: number;
}

/** Settles a request with its result. The step of a sequence leaves a checkpoint. */
export function resultOf(held: Held, last: LastRun, limits: EndLimits, noteOf: NoteOf = () => undefined): Settled {
  const { delivery, rows, admittedAt } = held;
  const { states, outputs, record, run, shareMs } = last;
  const meta = delivery.sequence === undefined ? {} : stepMeta(delivery.number);
  const body = record === undefined ? encodeFrame(meta, outputs, noteOf(held)) : Buffer.from(record);
  const spent = spentOf(held, shareMs, body.length);
  const ended = { delivery, outcome: { kind: "result", body }, deadReason: undefined, spent } as const;
  const measured = { run, rows, admittedAt };
  if (states.length === 0 || delivery.sequence === undefined) {
    return { ...ended, state: { action: "drop" }, checkpoint: undefined, measured };
  }
  const checkpoint = encodeCheckpoint(nameRun(delivery.entry, limits.runs), states);
  const { version, frame } = checkpoint;
  if (frame.length > limits.maxStateBytes) {
    const message = `the sequence's state would exceed ${limits.maxStateBytes} bytes`;
    return { ...unchanged(held, new InferenceError("state_too_large", message), noteOf), spent };
  }
  return { ...ended, state: { action: "put", version, checkpoint: frame }, checkpoint, measured };
}

/**
 * Settles a failed step. Its sequence continues from the state before, which after a failed START
 * is the initial state.
 */
export function unchanged(held: Held, error: InferenceError, noteOf: NoteOf = () => undefined): Settled {
  const { delivery, admittedAt } = held;
  const action = delivery.start ? "drop" : "keep";
  return {
    delivery,
    admittedAt,
    outcome: storeOutcome({ ...outcomeOf(error), note: noteOf(held) }),
    state: { action },
    deadReason: undefined,
    checkpoint: undefined,
  };
}

/**
 * Settles a step with this error and fails its sequence, so that later steps without START get an
 * error.
 *
 * @param deadReason the reason if the request goes to the dead stream; otherwise undefined
 */
export function failSequence({ delivery, admittedAt }: Held, error: InferenceError, deadReason?: string): Settled {
  return {
    delivery,
    admittedAt,
    outcome: storeOutcome(outcomeOf(error)),
    state: { action: "fail" },
    deadReason,
    checkpoint: undefined,
  };
}

/**
 * Settles a request that no model ran before its deadline. A START that never ran leaves no
 * sequence behind.
 */
export function expired({ delivery }: Held): Settled {
  return {
    delivery,
    outcome: storeOutcome(outcomeOf(fixedError("expired", "beforeResult"))),
    state: { action: delivery.start ? "fail" : "keep" },
    deadReason: undefined,
    checkpoint: undefined,
  };
}

/** The error of a model that failed. @param reason the runtime's own */
export function modelError(reason: string): InferenceError {
  return new InferenceError("model_error", `onnx runtime error: ${withoutPaths(reason)}`);
}

/**
 * Ends a request with an error.
 * @param settle settles it, unless an ensemble has called the model
 * @returns the settlement, if any
 */
export function failed(held: Held, error: InferenceError, settle: () => Settled): Settled[] {
  if (held.call === undefined) return [settle()];
  held.call.ended({ kind: "error", error });
  return [];
}

/** Ends a call with its result. Copies the tensors, which later runs overwrite. */
export function answerCall(
  call: StepCall,
  last: Omit<LastRun, "outputs">,
  outputs: readonly Tensor[] | undefined,
): void {
  const { states, run, shareMs } = last;
  call.ended({ kind: "result", outputs: outputs && copies(outputs), states: copies(states), run, shareMs });
}

export function copies(tensors: readonly Tensor[]): Tensor[] {
  return tensors.map((tensor) => ({ ...tensor, data: Buffer.from(tensor.data) }));
}
