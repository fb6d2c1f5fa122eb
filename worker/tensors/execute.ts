/**
 * Runs one batch: finds the states, stacks the tensors, asks the model, and makes a settlement of
 * each step. Writes nothing to Redis.
 */
import { statesFault } from "#shared/contract/states.js";
import { writeTimings } from "#shared/contract/timings.js";
import { boot } from "#shared/boot.js";
import { stopwatch } from "#shared/metrics/stopwatch.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import type { BatchCounts, RunTimes } from "../lane/counts.js";
import type { Held } from "../lane/holdings.js";
import { spentOf } from "../lane/spent.js";
import type { Begin } from "./begin.js";
import { split, stack } from "./stack.js";
import { joined, makeInputs, scatter } from "./ragged.js";
import { reshaped, type Reshapes } from "./reshape.js";
import type { Layouts, ServingModel, StateSpec } from "./serving.js";
import type { RunResult } from "./host.js";
import type { Pieces } from "./memory.js";
import type { WantedOutput } from "./protocol.js";
import type { Settled } from "../lane/settle.js";
import { controlTensor } from "./controls.js";
import {
  answerCall,
  failed,
  failSequence,
  modelError,
  resultOf,
  unchanged,
  type EndLimits,
  type NoteOf,
} from "./ends.js";
import { lastAnswer, lastOutputs, nextRun, type Again } from "./iterate.js";

/** A batch that ran. */
export interface Execution {
  /**
   * Turns the model's outputs into settlements. To be called once, while the model is busy again,
   * because this takes time.
   */
  settlements(): Settled[];
  /** Steps that did not run, because Redis did not give their state in time. */
  readonly abandoned: readonly Held[];
  /** How long the model took, in ms. */
  readonly ranMs: number;
  /**
   * The number of model runs. There are several if states differ in size, or if the batch failed as
   * a whole.
   */
  readonly runs: number;
}

export interface ExecuteLimits extends EndLimits {
  /** Counts each run of the model; absent if nobody counts. */
  readonly counts?: BatchCounts | undefined;
  /** Whether outcomes say how long their requests waited and ran, and in which worker. */
  readonly timings?: boolean;
}

interface Runnable {
  readonly held: Held;
  /** The state that the step continues; undefined if the step begins with the initial state. */
  readonly states: readonly Tensor[] | undefined;
}

/** How a batch goes to the model's thread. */
export interface Posting {
  /** Lets the caller take the batch back; the execution of such a batch settles nothing. */
  readonly begin?: Begin;
  /** Runs once the thread has the batch, or its first part. */
  readonly onPosted?: () => void;
  /**
   * Takes a request that is to run again, while `settlements` runs. Absent: each request runs once
   * and has one answer, as before a model serves.
   */
  readonly again?: (again: Again) => void;
}

/**
 * Runs a batch. A step that fails in the model ends with an error, and its neighbours stay
 * unaffected.
 */
export async function execute(
  model: ServingModel,
  batch: readonly Held[],
  limits: ExecuteLimits,
  { begin, onPosted, again }: Posting = {},
): Promise<Execution> {
  const runnable: Runnable[] = [];
  const refused: Settled[] = [];
  const abandoned: Held[] = [];
  let since = stopwatch();
  const lookups = await Promise.all(batch.map(({ state }) => state));
  for (const [i, held] of batch.entries()) {
    const lookup = lookups[i];
    if (lookup?.kind === "found" && !fits(model, lookup.tensors)) {
      // A client may have imported this state through a gateway with weaker checks.
      const unfit = fixedError("state_corrupt", "unfit");
      refused.push(...failed(held, unfit, () => failSequence(held, unfit)));
    } else if (lookup?.kind === "found") runnable.push({ held, states: lookup.tensors });
    else if (lookup?.kind === "refused") refused.push(failSequence(held, lookup.error));
    else abandoned.push(held);
  }
  const ran: Ran[] = [];
  for (const alike of groupsOf(model, runnable)) {
    if (ran.length > 0) since = stopwatch();
    const posting = { again, begin: ran.length === 0 ? begin : undefined };
    const running = runTogether(model, alike, limits, since, posting);
    onPosted?.();
    const group = await running;
    if (group === undefined) return { settlements: () => [], abandoned: [], ranMs: 0, runs: 0 };
    ran.push(group);
  }
  return {
    settlements: () => [...refused, ...ran.flatMap(({ settlements }) => settlements())],
    abandoned,
    ranMs: ran.reduce((sum, { ranMs }) => sum + ranMs, 0),
    runs: ran.reduce((sum, { runs }) => sum + runs, 0),
  };
}

/**
 * Divides a batch into groups that can be stacked. States of variable size may differ in size. The
 * plan cannot know this, because it sees no states.
 */
function groupsOf({ states }: ServingModel, runnable: readonly Runnable[]): Iterable<readonly Runnable[]> {
  if (!states.some(({ dims }) => dims.includes(-1))) return [runnable];
  const groups = new Map<string, Runnable[]>();
  for (const one of runnable) {
    const shapes = (one.states ?? states.map(initial)).map(({ shape }) => shape.join());
    const key = shapes.join(";");
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return groups.values();
}

/** Whether the model may have made a state; undefined stands for the initial state. */
function fits({ states, batching }: ServingModel, tensors: readonly Tensor[] | undefined): boolean {
  return tensors === undefined || statesFault(states, batching.batched, tensors) === undefined;
}

type Ran = Omit<Execution, "abandoned">;

interface HowToRun {
  readonly begin?: Begin | undefined;
  readonly again: Posting["again"];
}

/**
 * @param since when the work on the batch's inputs began, on `performance.now()`'s clock
 * @returns undefined if the caller has taken the batch back
 */
async function runTogether(
  model: ServingModel,
  batch: readonly Runnable[],
  limits: ExecuteLimits,
  since: number,
  { begin, again }: HowToRun,
): Promise<Ran | undefined> {
  if (batch.length === 0) return { settlements: () => [], ranMs: 0, runs: 0 };
  const outputs = wantedOutputs(model, batch);
  const rows = batch.reduce((sum, { held }) => sum + held.rows, 0);
  try {
    const { batched } = model.batching;
    const running = model.host.run(inputTensors(model, batch), outputs, batched ? rows : undefined, begin);
    const inputMs = stopwatch() - since;
    const ran = await running;
    if (ran === undefined) return undefined;
    const { ranMs } = ran;
    limits.counts?.ran(rows, inputMs, ranMs);
    const times = { begunAt: stopwatch() - ranMs, inputMs, ranMs, outputMs: 0 };
    const notes = { times, noteOf: noting(limits, times), again };
    return { settlements: () => results(model, batch, ran, limits, notes), ranMs, runs: 1 };
  } catch (error) {
    limits.counts?.ran(rows, 0, 0);
    const reason = error instanceof Error ? error.message : String(error);
    if (batch.length === 1) {
      const noteOf = noting(limits, { begunAt: stopwatch(), ranMs: 0 });
      return { settlements: () => allFailed(batch, reason, noteOf), ranMs: 0, runs: 1 };
    }
  }
  // One request's bad input must not fail its neighbours. Each request runs again by itself, and
  // only the faulty request fails.
  const settled: Settled[] = [];
  let totalMs = 0;
  for (const one of batch) {
    const alone = await runTogether(model, [one], limits, stopwatch(), { again });
    settled.push(...(alone?.settlements() ?? []));
    totalMs += alone?.ranMs ?? 0;
  }
  return { settlements: () => settled, ranMs: totalMs, runs: 1 + batch.length };
}

/** What the settlements of a batch say of its run. */
interface RunNotes {
  readonly times: RunTimes;
  readonly noteOf: NoteOf;
  readonly again: Posting["again"];
}

function noting({ timings }: ExecuteLimits, { begunAt, ranMs }: Pick<RunTimes, "begunAt" | "ranMs">): NoteOf {
  if (timings !== true) return () => undefined;
  return ({ admittedAt, before }) => {
    const queueMs = (before.begunAt ?? begunAt) - admittedAt;
    return writeTimings({ queueMs, runMs: before.ranMs + ranMs, boot });
  };
}

function wantedOutputs(model: ServingModel, batch: readonly Runnable[]): WantedOutput[] {
  const { again, answersWhen, feeds = [] } = model.iteration ?? {};
  const names = new Set([...model.states, ...feeds].map(({ output }) => output));
  for (const flag of [again, answersWhen]) if (flag !== undefined) names.add(flag);
  for (const { held } of batch) for (const name of requestedOutputs(held)) names.add(name);
  return [...names].map((name) => ({ name, axis: model.layouts.outputs.get(name)?.axis }));
}

function requestedOutputs({ request }: Held): readonly string[] {
  return request.meta["outputs"] as readonly string[];
}

/** The inputs of the graph: constants, inputs of requests, states, and controls. */
function inputTensors(model: ServingModel, batch: readonly Runnable[]): Pieces[] {
  const { inputs } = model.layouts;
  const { batched } = model.batching;
  const asGraph = (tensor: Tensor) => inShape(tensor, model.reshapes?.inputs, inputs);
  const requests = batch[0]?.held.request.tensors ?? [];
  const rows = batch.map(({ held }) => held.rows);
  const { ragged } = model;
  const ofEach = (tensorOf: (one: Runnable) => Tensor) => {
    const parts = batch.map(tensorOf);
    if (ragged?.inputs.has(parts[0]?.name ?? "") === true) return joined(parts);
    return stack(parts, rows, inputs.get(parts[0]?.name ?? ""));
  };
  const ofEachRow = (constant: Tensor) => {
    const ones = Array<number>(rows.reduce((sum, count) => sum + count, 0)).fill(1);
    return stack(
      ones.map(() => constant),
      ones,
      inputs.get(constant.name),
    );
  };
  return [
    ...model.constants.map(ofEachRow),
    ...requests.map((_, i) => ofEach(({ held }) => asGraph(pick(held.request.tensors, i)))),
    ...(ragged?.made ?? []).flatMap((made) => makeInputs(made, shapesOf(batch, made.source), batched)),
    ...model.states.map((spec, i) => ofEach(({ states }) => (states ? pick(states, i) : initial(spec)))),
    ...model.controls.map((control) => ofEach(({ held }) => controlTensor(control, held, batched))),
  ];
}

/** The shapes of an input in the requests of a batch. */
function shapesOf(batch: readonly Runnable[], input: string): (readonly number[])[] {
  return batch.map(({ held }) => held.request.tensors.find(({ name }) => name === input)?.shape ?? []);
}

/** The tensor in the shape that the graph or the client has for it. */
function inShape(tensor: Tensor, reshapes: Reshapes | undefined, layouts: Layouts): Tensor {
  const reshape = reshapes?.get(tensor.name);
  if (reshape === undefined) return tensor;
  return { ...tensor, shape: reshaped(tensor.shape, reshape, layouts.has(tensor.name)) };
}

function initial({ input, datatype, initialShape, initial }: StateSpec): Tensor {
  return { name: input, datatype, shape: initialShape, data: initial };
}

function pick(tensors: readonly Tensor[], index: number): Tensor {
  const tensor = tensors[index];
  if (tensor === undefined) throw new RangeError("a frame lacks a tensor that its neighbours have");
  return tensor;
}

function results(
  model: ServingModel,
  batch: readonly Runnable[],
  ran: RunResult,
  limits: ExecuteLimits,
  notes: RunNotes,
): Settled[] {
  const since = stopwatch();
  const { times } = notes;
  try {
    return takeApart(model, batch, ran, limits, notes);
  } finally {
    ran.letGo();
    times.outputMs = stopwatch() - since;
    limits.counts?.tookApart(
      batch.reduce((sum, { held }) => sum + held.rows, 0),
      times.outputMs,
    );
  }
}

/** Copies the settlements' data out of the outputs. */
function takeApart(
  model: ServingModel,
  batch: readonly Runnable[],
  { outputs, ranMs }: RunResult,
  limits: ExecuteLimits,
  notes: RunNotes,
): Settled[] {
  const { noteOf } = notes;
  const rows = batch.map(({ held }) => held.rows);
  const msARow = ranMs / rows.reduce((sum, count) => sum + count, 0);
  let parts: Map<string, Tensor[]>;
  try {
    const layouts = model.layouts.outputs;
    parts = new Map(
      outputs.map((output) => {
        const scattered = model.ragged?.scattered.get(output.name);
        if (scattered !== undefined) {
          const shapes = shapesOf(batch, scattered.source);
          return [output.name, scatter(output, scattered, shapes, model.batching.batched)];
        }
        const own = split(output, rows, layouts.get(output.name));
        return [output.name, own.map((part) => inShape(part, model.reshapes?.outputs, layouts))];
      }),
    );
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return allFailed(batch, reason, noteOf);
  }
  return batch.flatMap(({ held }, i) => {
    const part = (name: string) => pick(parts.get(name) ?? [], i);
    return endOf(model, held, part, { ...notes, shareMs: msARow * held.rows }, limits);
  });
}

function allFailed(batch: readonly Runnable[], reason: string, noteOf: NoteOf): Settled[] {
  const error = modelError(reason);
  return batch.flatMap(({ held }) => failed(held, error, () => unchanged(held, error, noteOf)));
}

/**
 * @param output gives the request's part of an output
 * @returns the settlement; none for a request that is to run again, or that an ensemble has made
 */
function endOf(
  model: ServingModel,
  held: Held,
  output: (name: string) => Tensor,
  { times, noteOf, again, shareMs }: RunNotes & { readonly shareMs: number },
  limits: ExecuteLimits,
): Settled[] {
  const { call } = held;
  const fail = (error: InferenceError) =>
    failed(held, error, () => ({ ...unchanged(held, error, noteOf), spent: spentOf(held, shareMs, 0) }));
  const given = model.states.map((state) => output(state.output));
  const fault = statesFault(model.states.map(asOutput), model.batching.batched, given);
  if (fault !== undefined) return fail(modelError(`the state for the sequence's next step ${fault}`));
  const states = model.states.map(({ input: name }, i) => ({ ...pick(given, i), name }));
  const wanted = requestedOutputs(held);
  const run = wholeRun(held, times);
  const part = { states, output, wanted, begunAt: times.begunAt, ranMs: times.ranMs, shareMs };
  try {
    const following = again && nextRun(held, model, part, limits.maxStateBytes);
    if (following !== undefined) {
      again?.(following);
      return [];
    }
    if (call !== undefined) {
      answerCall(call, { states, run, shareMs: held.before.shareMs + shareMs }, lastOutputs(held, model, part));
      return [];
    }
    const record = again && model.decoupled === true ? lastAnswer(held, model, part) : undefined;
    const outputs = record === undefined ? wanted.map(output) : [];
    return [resultOf(held, { states, outputs, record, run, shareMs }, limits, noteOf)];
  } catch (error) {
    if (error instanceof InferenceError) return fail(error);
    throw error;
  }
}

/** The times of a request, which may have run before. */
function wholeRun({ before }: Held, times: RunTimes): RunTimes {
  if (before.runs === 0) return times;
  return { ...times, begunAt: before.begunAt ?? times.begunAt, ranMs: before.ranMs + times.ranMs };
}

/** The state as the graph gives it, under the name of its output. */
function asOutput(state: StateSpec): StateSpec {
  return { ...state, input: state.output };
}
