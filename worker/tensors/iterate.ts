/**
 * The runs of one request to an iterative model. A request that is to run again waits in the worker
 * like a request that has just arrived, so requests join and leave between two runs, and all that
 * are under way share batches.
 */
import { writeAnswer } from "#shared/contract/answer-record.js";
import { encodeCheckpoint, openCheckpoint } from "#shared/contract/checkpoint.js";
import { InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { noRuns, shapeKeyOf, type Batching, type Held, type RunsBefore } from "../lane/holdings.js";
import type { Settled } from "../lane/settle.js";
import { copies } from "./ends.js";
import type { ServingModel } from "./serving.js";

/** Most bytes of all answers to one request. Redis keeps them until the log goes. */
const MOST_ANSWER_BYTES = 16 << 20;

/** The part of a request in a run. */
export interface Part {
  /** The states that the run leaves, under the names of their inputs. */
  readonly states: readonly Tensor[];
  /** @returns an output in the shape that clients know */
  readonly output: (name: string) => Tensor;
  /** The names of the outputs that the client wants. */
  readonly wanted: readonly string[];
  /** The run's begin, on `performance.now()`'s clock; its time and the request's share, in ms. */
  readonly begunAt: number;
  readonly ranMs: number;
  readonly shareMs: number;
}

/** A request that is to run again. */
export interface Again {
  /** The request as its next run takes it. */
  readonly held: Held;
  /**
   * What the next run continues, for a worker that takes the request over; undefined if that worker
   * is to begin anew.
   */
  readonly checkpoint: Buffer | undefined;
  /** The record of the answer that the last run gave; undefined if it gave none. */
  readonly answer: string | undefined;
  /** The same answer for the ensemble that called the model. */
  readonly outputs?: readonly Tensor[] | undefined;
}

/** How a request that may have run before goes on at this worker. */
export type Resumed =
  /** The model runs it. `logged`: how many answers its log has. */
  | { readonly kind: "run"; readonly held: Held; readonly logged: number }
  /** Its end is known, and only the commit is left. */
  | { readonly kind: "settle"; readonly settled: Settled };

/**
 * Keeps in Redis how far requests have come between their runs: their answers, in a log, and their
 * checkpoints. Only models have one whose requests may run more than once or be answered more than
 * once.
 */
export interface RunLog {
  /**
   * Notes the last runs of requests.
   * @param surely whether each request gets a checkpoint now, which shows that it has come further
   * than its last worker, and clears the count of its runs alone
   * @returns the requests that may run again, and the ends of those that may not. A request that is
   * in neither is another worker's.
   */
  goOn(
    requests: readonly Again[],
    surely?: boolean,
  ): Promise<{ readonly again: readonly Held[]; readonly ended: readonly Settled[] }>;
  /** Finds out how far a request had come at another worker. */
  resume(held: Held): Promise<Resumed>;
  /**
   * Notes the ends of requests in their logs, before their commits.
   * @returns the ends that this worker may still commit
   */
  end(settled: readonly Settled[]): Promise<readonly Settled[]>;
  /** Removes what requests leave behind, after their commits. */
  forget(settled: readonly Settled[]): void;
}

/**
 * Copies all that the next run needs.
 * @returns undefined after the last run
 * @throws InferenceError if the model asks for more runs or more memory than the request may have
 */
export function nextRun(
  held: Held,
  { iteration, batching, decoupled }: Pick<ServingModel, "iteration" | "batching" | "decoupled">,
  part: Part,
  maxStateBytes: number,
): Again | undefined {
  if (iteration === undefined) return undefined;
  const { again, feeds, most } = iteration;
  const { states, output } = part;
  if (!isSet(output(again))) return undefined;
  const ran = held.before.runs + 1;
  if (ran >= most) {
    const runs = `${ran} ${ran === 1 ? "run" : "runs"}, which is max_iterations`;
    throw new InferenceError("model_error", `output '${again}' still asks for another run after ${runs}`);
  }
  const outputs = decoupled === true ? answerOf(held, part, iteration.answersWhen) : undefined;
  const isCalled = held.call !== undefined;
  const answer = isCalled ? undefined : outputs && writeAnswer(held.before.answers, outputs, false);
  const before = behind(held, part, outputs);
  const fed = feeds.map(({ output: from, input: name }) => ({ ...output(from), name }));
  const checkpoint = encodeCheckpoint(textOf(before), [...states, ...fed]);
  if (checkpoint.frame.length > maxStateBytes) {
    const what = "what the request keeps between two runs";
    throw new InferenceError("state_too_large", `${what} would exceed ${maxStateBytes} bytes`);
  }
  const next = fromTensors({ ...begun(held), before }, checkpoint.tensors, states.length, batching);
  return {
    held: next,
    checkpoint: checkpoint.frame,
    answer,
    outputs: isCalled ? outputs && copies(outputs) : undefined,
  };
}

/** A request that has begun to run has met its deadline. */
export function begun(held: Held): Held {
  return { ...held, expiresAt: Infinity };
}

/**
 * @param checkpoint of an earlier run of the request
 * @returns the request as the run after that checkpoint takes it
 * @throws InferenceError if the checkpoint is damaged
 */
export function fromCheckpoint(
  held: Held,
  checkpoint: Buffer,
  { states, batching }: Pick<ServingModel, "states" | "batching">,
): Held {
  const { version, tensors } = openCheckpoint(checkpoint);
  return fromTensors({ ...held, before: readBefore(version) }, tensors, states.length, batching);
}

/** The runs that a request has behind it after one more. @param outputs its answer, if any */
function behind({ before }: Held, part: Part, outputs: readonly Tensor[] | undefined): RunsBefore {
  return {
    runs: before.runs + 1,
    answers: before.answers + (outputs === undefined ? 0 : 1),
    bytes: before.bytes + bytesOf(outputs ?? []),
    shareMs: before.shareMs + part.shareMs,
    ranMs: before.ranMs + part.ranMs,
    begunAt: before.begunAt ?? part.begunAt,
  };
}

/** The part of it that another worker needs, as the version of a checkpoint. */
function textOf({ runs, answers, bytes, shareMs }: RunsBefore): string {
  return [runs, answers, bytes, Math.round(shareMs)].join(".");
}

function readBefore(text: string): RunsBefore {
  const [runs = 0, answers = 0, bytes = 0, shareMs = 0] = text.split(".").map(Number);
  return { ...noRuns, runs, answers, bytes, shareMs };
}

export function bytesOf(tensors: readonly Tensor[]): number {
  return tensors.reduce((sum, { data }) => sum + data.length, 0);
}

/** @param tensors the states, then the inputs that outputs have fed */
function fromTensors(held: Held, tensors: readonly Tensor[], states: number, batching: Batching): Held {
  const fed = tensors.slice(states);
  const state = Promise.resolve({ kind: "found", tensors: tensors.slice(0, states) } as const);
  if (fed.length === 0) return { ...held, state };
  const given = held.request.tensors;
  const inputs = given.map((tensor) => fed.find(({ name }) => name === tensor.name) ?? tensor);
  // The request may have left out an optional input.
  inputs.push(...fed.filter(({ name }) => !given.some((tensor) => tensor.name === name)));
  return {
    ...held,
    request: { ...held.request, tensors: inputs },
    shapeKey: shapeKeyOf(inputs, batching),
    state,
  };
}

/**
 * The record of a request's last run.
 * @throws InferenceError if the request has too many bytes of answers
 */
export function lastAnswer(held: Held, { iteration }: Pick<ServingModel, "iteration">, part: Part): string {
  return writeAnswer(held.before.answers, answerOf(held, part, iteration?.answersWhen), true);
}

/**
 * The outputs of a request's last run, for the ensemble that called the model.
 * @returns undefined if there is no answer
 */
export function lastOutputs(
  held: Held,
  { iteration, decoupled }: Pick<ServingModel, "iteration" | "decoupled">,
  part: Part,
): Tensor[] | undefined {
  return decoupled === true ? answerOf(held, part, iteration?.answersWhen) : part.wanted.map(part.output);
}

/**
 * @param when the output that says whether there is an answer
 * @throws InferenceError
 */
function answerOf({ before }: Held, { output, wanted }: Part, when: string | undefined): Tensor[] | undefined {
  if (when !== undefined && !isSet(output(when))) return undefined;
  const outputs = wanted.map(output);
  checkBytes(before.bytes + bytesOf(outputs));
  return outputs;
}

/** @throws InferenceError if the answers to a request have more bytes than they may */
export function checkBytes(bytes: number): void {
  if (bytes <= MOST_ANSWER_BYTES) return;
  throw new InferenceError("model_error", `the answers to the request would exceed ${MOST_ANSWER_BYTES} bytes`);
}

function isSet({ data }: Tensor): boolean {
  return data.some((byte) => byte !== 0);
}
