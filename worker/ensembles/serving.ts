/**
 * Turns the configuration of an ensemble and the models of its steps into the facts that the
 * ensemble's lanes run by, and into its announcement to the fleet.
 */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { ModelConfig } from "#shared/model/config.js";
import { unbatched, type Batching } from "../lane/holdings.js";
import { ENSEMBLE } from "../models/validate/ensemble.js";
import { refuseParametersOfSequences } from "../models/validate/validate.js";
import {
  historyOf,
  specOf,
  startsImplicitly,
  takesStatesOf,
  type ServingModel,
  type StateSpec,
} from "../tensors/serving.js";
import { LoadError } from "../thread/load-error.js";
import { planEnsemble, type PlannedStep } from "./graph.js";

/** A model that a step of an ensemble can run. */
export interface Callable {
  readonly served: ServedModel;
  readonly batching: Batching;
  /** With all dimensions: those of a model with a batch axis begin with 1. */
  readonly states: readonly StateSpec[];
  /** How long a sequence may go without a step, in ms; undefined for a model without sequences. */
  readonly maxIdleMs: number | undefined;
  /** The files of the model, or of the models of an ensemble. */
  readonly files: readonly string[];
}

/** @param files of the model */
export function callableOf(model: ServingModel, served: ServedModel, files: readonly string[]): Callable {
  const { batching, maxIdleMs } = model;
  const states = model.states.map((state) => ({ ...state, dims: batching.batched ? [1, ...state.dims] : state.dims }));
  return { served, batching, states, maxIdleMs, files };
}

/** A step that runs a generator gives the text in parts, and begins a text anew at each call. */
export function callableGenerator(served: ServedModel, files: readonly string[]): Callable {
  return { served: { ...served, decoupled: true }, batching: unbatched, states: [], maxIdleMs: undefined, files };
}

export interface ServingStep extends PlannedStep {
  readonly batching: Batching;
  /** The states of the step's model, and the place of the first among the ensemble's states. */
  readonly states: readonly StateSpec[];
  readonly firstState: number;
}

/** An output, with its dims without the batch axis. */
export type OutputSpec = Pick<ModelConfig["output"][number], "name" | "dims">;

/** An ensemble as its lanes run it. */
export interface EnsembleModel {
  readonly name: string;
  readonly version: string;
  readonly batching: Batching;
  readonly outputs: readonly OutputSpec[];
  /** Each step lies behind those whose outputs it takes. */
  readonly steps: readonly ServingStep[];
  /**
   * The states of all steps. One sequence of the ensemble has one checkpoint with all of them, so a
   * request takes effect in all of its steps or in none.
   */
  readonly states: readonly StateSpec[];
  readonly maxIdleMs: number | undefined;
  /** Whether a request without an id is a sequence of its own. */
  readonly takesBoth: boolean;
  readonly history: number;
  readonly decoupled: boolean;
  /** The facts of the generator among the models of its steps; undefined if there is none. */
  readonly samples: ServedModel["samples"];
  /** How many requests a worker holds at once. */
  readonly most: number;
  /** How many answers of a decoupled step wait for the steps behind it. */
  readonly mostAnswers: number;
}

/** Keeps the memory of a worker bounded, if its steps take many. */
const MOST_HELD = 512;
/** `max_inflight_requests`, if the configuration has none. */
const USUAL_ANSWERS = 16;

/**
 * @param callables the model of each step, in the order of the steps
 * @throws LoadError if the models do not fit each other
 */
export function ensembleOf(config: ModelConfig, version: string, callables: readonly Callable[]): EnsembleModel {
  const planned = planEnsemble(
    config,
    callables.map(({ served }) => served),
  );
  const states: StateSpec[] = [];
  const callableOfStep = ({ served: own }: PlannedStep) => callables.find(({ served }) => served === own) as Callable;
  const steps = planned.map((step, place): ServingStep => {
    const { states: all, batching } = callableOfStep(step);
    const own = step.startsAnew ? [] : all;
    const firstState = states.length;
    // A model may be in several steps, each with states of its own.
    states.push(...own.map((state) => ({ ...state, ...named(place, step, state) })));
    return { ...step, batching, states: own, firstState };
  });
  const lasting = planned.filter(({ startsAnew }) => !startsAnew);
  const idle = lasting.flatMap((step) => callableOfStep(step).maxIdleMs ?? []);
  const withSequences = lasting.flatMap(({ served }) => served.sequence ?? []);
  if (idle.length === 0) refuseParametersOfSequences(config);
  const decoupled = planned.some(({ served }) => served.decoupled === true);
  const cannot = idle.length > 0 ? "sequence batching scheduler" : "'decoupled' transaction policy";
  if (config.response_cache?.enable === true && (idle.length > 0 || decoupled)) {
    throw new LoadError(
      `Response Cache does not currently support model ${config.name} with ${cannot}. Please disable the response cache.`,
    );
  }
  return {
    name: config.name,
    version,
    batching: { batched: config.max_batch_size > 0, shared: new Set() },
    outputs: config.output,
    steps,
    states,
    maxIdleMs: idle.length === 0 ? undefined : Math.min(...idle),
    takesBoth: withSequences.length > 0 && withSequences.every(({ iterative }) => iterative === true),
    history: historyOf(config),
    decoupled,
    samples: generatorIn(config.name, planned),
    most: Math.min(
      MOST_HELD,
      planned.reduce((sum, { served }) => sum + (served.takes ?? 1), 0),
    ),
    mostAnswers: config.ensemble_scheduling?.max_inflight_requests || USUAL_ANSWERS,
  };
}

/** @throws LoadError if there is more than one, because a request has parameters for one */
function generatorIn(ensemble: string, steps: readonly PlannedStep[]): ServedModel["samples"] {
  const [first, second] = steps.flatMap(({ served: { name, generator, samples = generator } }) =>
    samples === undefined ? [] : { name, samples },
  );
  if (second === undefined) return first?.samples;
  const both = `'${first?.name}' and '${second.name}' both generate text`;
  throw new LoadError(`in ensemble ${ensemble}, ${both}: a request has parameters for one generator`);
}

function named(place: number, { served }: PlannedStep, { input, output }: StateSpec) {
  const step = `${place}.${served.name}`;
  return { input: `${step}.${input}`, output: `${step}.${output}` };
}

/**
 * @param digest of the facts that decide the ensemble's answers
 * @param printed the configuration for clients to see
 */
export function servedEnsemble(
  config: ModelConfig,
  model: EnsembleModel,
  digest: string,
  printed: Record<string, unknown>,
): ServedModel {
  const { states, maxIdleMs, history, decoupled, samples } = model;
  const steps = model.steps.filter(({ startsAnew }) => !startsAnew);
  const corrids = steps.flatMap(({ served }) => served.sequence?.corrid ?? []);
  const [corrid] = corrids;
  const other = corrids.find(({ datatype }) => (datatype === "BYTES") !== (corrid?.datatype === "BYTES"));
  if (corrid !== undefined && other !== undefined) {
    throw new LoadError(
      `in ensemble ${config.name}, the controls '${corrid.tensor}' and '${other.tensor}' take ids of different kinds`,
    );
  }
  const withSequences = steps.filter(({ served }) => served.sequence !== undefined);
  // An iterative model takes requests without an id, so it is not the one that refuses them.
  const first = withSequences.find(({ served }) => served.sequence?.iterative !== true) ?? withSequences[0];
  const beginsSo = steps.every(({ served: { sequence } }) => sequence === undefined || sequence.implicitStart === true);
  return {
    name: config.name,
    version: model.version,
    platform: ENSEMBLE,
    maxBatchSize: config.max_batch_size,
    inputs: config.input.map((input) => ({ ...specOf(input), ...(input.optional && { optional: true }) })),
    outputs: config.output.map(specOf),
    ...(decoupled && { decoupled: true }),
    ...(samples && { samples }),
    ...(maxIdleMs !== undefined && {
      sequence: {
        maxIdleMs,
        history,
        ...(model.takesBoth && { iterative: true }),
        ...((beginsSo || startsImplicitly(config)) && { implicitStart: true }),
        ...takesStatesOf(config),
        ...(corrid && { corrid }),
        states: states.map(({ input, datatype, dims }) => ({ input, datatype, dims: [...dims] })),
        ...(first && { firstStep: first.served.sequence?.firstStep ?? first.served.name }),
      },
    }),
    ...(config.response_cache?.enable === true && { cachesAnswers: true }),
    takes: model.most,
    config: { ...printed, ...(decoupled && { model_transaction_policy: { decoupled: true } }) },
    digest,
  };
}
