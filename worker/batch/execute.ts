/** Runs one batch: finds the states, stacks the tensors, asks the model, and says for each step how it ended. Writes nothing. */
import { storeOutcome, outcomeOf, type Outcome } from "#shared/contract/outcome.js";
import { InferenceError } from "#shared/errors.js";
import { encodeFrame, type Tensor } from "#shared/frame.js";
import { elementFault } from "#shared/model/strings.js";
import type { Held } from "../intake/hand.js";
import { withoutPaths } from "../model/reason.js";
import { split, stack } from "../model/tensors.js";
import type { ServingModel, StateSpec } from "../model/serving.js";
import type { RunResult } from "../model/host.js";
import type { Pieces } from "../model/memory.js";
import type { Settlement } from "../queue/commit.js";
import { encodeCheckpoint, type Checkpoint } from "../sequence/checkpoint.js";
import { controlTensor } from "../sequence/controls.js";

export interface Settled extends Settlement {
  /** The state after the step, for this worker's own memory. */
  readonly checkpoint: Checkpoint | undefined;
}

export interface Execution {
  /** The rest of the work: turns the model's outputs into settlements. Called once the model is busy again. */
  settle(): Settled[];
  /** Steps whose state could not be asked for; they are nobody's concern until Redis is back. */
  readonly abandoned: readonly Held[];
  readonly ranMs: number;
}

/** Hard limit on a checkpoint: it is written by Redis's only thread. */
export interface ExecuteLimits {
  readonly maxStateBytes: number;
}

interface Runnable {
  readonly held: Held;
  readonly states: readonly Tensor[] | undefined;
}

export async function execute(model: ServingModel, batch: readonly Held[], limits: ExecuteLimits): Promise<Execution> {
  const runnable: Runnable[] = [];
  const refused: Settled[] = [];
  const abandoned: Held[] = [];
  const lookups = await Promise.all(batch.map(({ state }) => state));
  for (const [i, held] of batch.entries()) {
    const lookup = lookups[i];
    if (lookup?.kind === "found") runnable.push({ held, states: lookup.tensors });
    else if (lookup?.kind === "refused") refused.push(failSequence(held, lookup.error));
    else abandoned.push(held);
  }
  const { settle, ranMs } = await runTogether(model, runnable, limits);
  return { settle: () => [...refused, ...settle()], abandoned, ranMs };
}

/** A step that ends its sequence: the state is gone, and steps without START are refused. */
export function failSequence({ delivery }: Held, error: InferenceError, deadReason?: string): Settled {
  return {
    delivery,
    outcome: storeOutcome(outcomeOf(error)),
    state: { action: "fail" },
    deadReason,
    checkpoint: undefined,
  };
}

async function runTogether(model: ServingModel, batch: readonly Runnable[], limits: ExecuteLimits) {
  if (batch.length === 0) return { settle: () => [], ranMs: 0 };
  const names = outputNames(model, batch);
  try {
    const rows = model.batched ? batch.reduce((sum, { held }) => sum + held.rows, 0) : undefined;
    const ran = await model.host.run(inputTensors(model, batch), names, rows);
    return { settle: () => results(model, batch, ran, limits), ranMs: ran.ranMs };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    if (batch.length === 1) return { settle: () => batch.map(({ held }) => modelError(held, reason)), ranMs: 0 };
  }
  // One request's bad input must not cost its neighbours: each runs again alone, and only the guilty one fails.
  const settlements: Settled[] = [];
  let totalMs = 0;
  for (const one of batch) {
    const alone = await runTogether(model, [one], limits);
    settlements.push(...alone.settle());
    totalMs += alone.ranMs;
  }
  return { settle: () => settlements, ranMs: totalMs };
}

function outputNames(model: ServingModel, batch: readonly Runnable[]): string[] {
  const names = new Set(model.states.map(({ output }) => output));
  for (const { held } of batch) for (const name of requestedOutputs(held)) names.add(name);
  return [...names];
}

function requestedOutputs({ request }: Held): readonly string[] {
  return request.meta["outputs"] as readonly string[];
}

function inputTensors(model: ServingModel, batch: readonly Runnable[]): Pieces[] {
  const requests = batch[0]?.held.request.tensors ?? [];
  return [
    ...requests.map((_, i) =>
      stack(
        batch.map(({ held }) => pick(held.request.tensors, i)),
        model.batched,
      ),
    ),
    ...model.states.map((spec, i) =>
      stack(
        batch.map(({ states }) => (states ? pick(states, i) : initial(spec))),
        model.batched,
      ),
    ),
    ...model.controls.map((control) =>
      stack(
        batch.map(({ held }) => controlTensor(control, held.delivery, model.batched)),
        model.batched,
      ),
    ),
  ];
}

function initial({ input, datatype, initialShape, initial }: StateSpec): Tensor {
  return { name: input, datatype, shape: initialShape, data: initial };
}

function pick(tensors: readonly Tensor[], index: number): Tensor {
  const tensor = tensors[index];
  if (tensor === undefined) throw new RangeError("a frame lacks a tensor that its neighbours have");
  return tensor;
}

function results(model: ServingModel, batch: readonly Runnable[], ran: RunResult, limits: ExecuteLimits): Settled[] {
  try {
    return takeApart(model, batch, ran.outputs, limits);
  } finally {
    ran.letGo();
  }
}

/** Settlements hold copies alone. */
function takeApart(
  model: ServingModel,
  batch: readonly Runnable[],
  outputs: RunResult["outputs"],
  { maxStateBytes }: ExecuteLimits,
): Settled[] {
  const rows = batch.map(({ held }) => held.rows);
  let parts: Map<string, Tensor[]>;
  try {
    parts = new Map(outputs.map((output) => [output.name, split(output, rows, model.batched)]));
  } catch (error) {
    return batch.map(({ held }) => modelError(held, error instanceof Error ? error.message : String(error)));
  }
  return batch.map(({ held }, i) => {
    const part = (name: string) => pick(parts.get(name) ?? [], i);
    const body = encodeFrame({}, requestedOutputs(held).map(part));
    const outcome: Outcome = { kind: "result", body };
    const { delivery } = held;
    if (model.states.length === 0) {
      return { delivery, outcome, state: { action: "drop" }, deadReason: undefined, checkpoint: undefined };
    }
    const fault = stateFault(model, part);
    if (fault !== undefined) return modelError(held, fault);
    const next = model.states.map(({ input, output }) => ({ ...part(output), name: input }));
    const checkpoint = encodeCheckpoint(delivery.entry, next);
    if (checkpoint.frame.length > maxStateBytes) {
      return unchanged(
        held,
        new InferenceError("state_too_large", `the sequence's state would exceed ${maxStateBytes} bytes`),
      );
    }
    return {
      delivery,
      outcome,
      state: { action: "put", checkpoint: checkpoint.frame },
      deadReason: undefined,
      checkpoint,
    };
  });
}

/** A model may give out a string that no step after this one could give back to it. */
function stateFault({ states }: ServingModel, part: (name: string) => Tensor): string | undefined {
  for (const { output, datatype } of states) {
    if (datatype !== "BYTES") continue;
    const found = elementFault(part(output).data);
    if (found !== undefined) return `a string of state output '${output}' ${found.fault} at the sequence's next step`;
  }
  return undefined;
}

function modelError(held: Held, reason: string): Settled {
  return unchanged(held, new InferenceError("model_error", `onnx runtime error: ${withoutPaths(reason)}`));
}

/** The step fails and the sequence goes on from the state it had; a failed START leaves it at its initial state. */
function unchanged({ delivery }: Held, error: InferenceError): Settled {
  const action = delivery.start ? "drop" : "keep";
  return {
    delivery,
    outcome: storeOutcome(outcomeOf(error)),
    state: { action },
    deadReason: undefined,
    checkpoint: undefined,
  };
}
