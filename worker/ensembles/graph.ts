/**
 * Checks the graph of an ensemble with the models of its steps, and puts the steps into an order in
 * which they can run. Errors have Triton's words. Pure.
 */
import type { ServedModel, TensorSpec } from "#shared/contract/announcement.js";
import { configType, kserveType, type EnsembleStep, type ModelConfig } from "#shared/model/config.js";
import { LoadError } from "../thread/load-error.js";

/** A step whose place in the graph is known. */
export interface PlannedStep {
  /** The model that the step runs. */
  readonly served: ServedModel;
  /** The inputs of the model in its own order, and the ensemble tensor that each takes. */
  readonly inputs: readonly { readonly spec: TensorSpec; readonly from: string }[];
  /** The outputs of the model that the ensemble uses, and the ensemble tensor that each becomes. */
  readonly outputs: readonly { readonly name: string; readonly to: string }[];
  /** The steps of the same level whose outputs the step takes, by their places in the order. */
  readonly after: readonly number[];
  /** How many decoupled steps lie before the step. Their answers come one after the other. */
  readonly level: number;
  /**
   * Whether each run of the step is a sequence of its own, of which nothing is kept: that of an
   * iterative model behind a decoupled one, which runs once for each answer.
   */
  readonly startsAnew: boolean;
}

/** A tensor of an ensemble: the shape with the batch axis, and the model that says so. */
interface Inferred {
  readonly datatype: string;
  readonly dims: readonly number[];
  readonly full: readonly number[];
  readonly of: string;
}

/**
 * @param config an ensemble that `validateEnsemble` has accepted
 * @param models the model of each step, in the order of the steps
 * @returns the steps, each behind those whose outputs it takes
 * @throws LoadError if the models do not fit each other
 */
export function planEnsemble(config: ModelConfig, models: readonly ServedModel[]): readonly PlannedStep[] {
  const { name, max_batch_size: most } = config;
  const steps = config.ensemble_scheduling?.step ?? [];
  const tensors = new Map<string, Inferred>();
  for (const { name: tensor, data_type, dims } of [...config.input, ...config.output]) {
    tensors.set(tensor, inferred({ name: tensor, datatype: kserveType(data_type), dims: [...dims] }, name, most));
  }
  const optional = new Set(config.input.filter((input) => input.optional).map((input) => input.name));
  for (const [i, step] of steps.entries()) {
    const model = models[i] as ServedModel;
    if (model.maxBatchSize !== 0 && model.maxBatchSize < most) {
      const allows = `but it contains model ${model.name} which only allows maximum batch size to be`;
      throw new LoadError(`ensemble ${name} allows maximum batch size ${most}, ${allows} ${model.maxBatchSize}`);
    }
    checkMaps(name, step, model, tensors);
    const strict = model.inputs.find((input) => optional.has(step.input_map[input.name] ?? "") && !input.optional);
    if (strict !== undefined) {
      const clash = `is optional, but input ${strict.name} of model ${model.name} is not`;
      throw new LoadError(`in ensemble ${name}, ensemble tensor ${step.input_map[strict.name]} ${clash}`);
    }
  }
  const passed = config.output.find((output) => optional.has(output.name));
  if (passed !== undefined) {
    throw new LoadError(`in ensemble ${name}, '${passed.name}' is an output, and an optional input`);
  }
  return ordered(config, steps, models);
}

/** @throws LoadError unless the maps fit the model's tensors */
function checkMaps(
  ensemble: string,
  { input_map, output_map }: EnsembleStep,
  model: ServedModel,
  tensors: Map<string, Inferred>,
): void {
  const where = `in ensemble ${ensemble}`;
  for (const [input, tensor] of Object.entries(input_map)) {
    if (model.inputs.some(({ name }) => name === input)) continue;
    throw new LoadError(
      `${where}, ensemble tensor ${tensor} is mapping to non-existing input ${input} in model ${model.name}`,
    );
  }
  for (const input of model.inputs) {
    const tensor = input_map[input.name];
    if (tensor !== undefined) agree(ensemble, tensor, inferred(input, model.name, model.maxBatchSize), tensors);
    else if (input.optional !== true) {
      throw new LoadError(`${where}, input ${input.name} in model ${model.name} is not mapped to any ensemble tensors`);
    }
  }
  for (const [output, tensor] of Object.entries(output_map)) {
    const spec = model.outputs.find(({ name }) => name === output);
    if (spec === undefined) {
      throw new LoadError(
        `${where}, ensemble tensor ${tensor} is mapped from non-existing output ${output} in model ${model.name}`,
      );
    }
    agree(ensemble, tensor, inferred(spec, model.name, model.maxBatchSize), tensors);
  }
}

function inferred({ datatype, dims, shared }: TensorSpec, of: string, maxBatchSize: number): Inferred {
  const hasRows = maxBatchSize > 0 && shared !== true;
  return { datatype, dims, full: hasRows ? [-1, ...dims] : dims, of };
}

/** @throws LoadError if the tensor is already inferred from a model that disagrees */
function agree(ensemble: string, tensor: string, found: Inferred, tensors: Map<string, Inferred>): void {
  const known = tensors.get(tensor);
  if (known === undefined) return void tensors.set(tensor, found);
  const where = `in ensemble ${ensemble}, ensemble tensor ${tensor}: inconsistent`;
  const both = (one: string, other: string) =>
    `${one} is inferred from model ${known.of} while ${other} is inferred from model ${found.of}`;
  if (known.datatype !== found.datatype) {
    const type = ({ datatype }: Inferred) => configType(datatype as Parameters<typeof configType>[0]);
    throw new LoadError(`${where} data type: ${both(type(known), type(found))}`);
  }
  if (fit(known.dims, found.dims) || fit(known.full, found.full)) return;
  const shape = ({ full }: Inferred) => `[${full.join(",")}]`;
  throw new LoadError(`${where} shape: ${both(shape(known), shape(found))}`);
}

/**
 * -1 fits any size; a request's own sizes are checked when it runs. A scalar of a graph is one
 * element elsewhere.
 */
function fit(own: readonly number[], others: readonly number[]): boolean {
  const one = own.length === 0 ? [1] : own;
  const other = others.length === 0 ? [1] : others;
  return one.length === other.length && one.every((dim, i) => dim === -1 || other[i] === -1 || dim === other[i]);
}

/** A tensor of an ensemble: the level that has it, and the place of the step that writes it. */
interface Written {
  readonly level: number;
  /** Undefined for an input of the ensemble. */
  readonly by: number | undefined;
}

/**
 * Orders the steps, and gives each its level. Triton lets a step take tensors of a single decoupled
 * step alone. Here it may also take those of the decoupled steps before that one.
 */
function ordered(
  { name, input }: ModelConfig,
  steps: readonly EnsembleStep[],
  models: readonly ServedModel[],
): readonly PlannedStep[] {
  const planned: PlannedStep[] = [];
  const known = new Map<string, Written>(input.map((tensor) => [tensor.name, { level: 0, by: undefined }]));
  const left = steps.map((step, i) => ({ step, served: models[i] as ServedModel }));
  while (left.length > 0) {
    const next = left.findIndex(({ step }) => Object.values(step.input_map).every((tensor) => known.has(tensor)));
    // The configuration has been checked, so there is a next step.
    const [one] = left.splice(Math.max(0, next), 1);
    if (one === undefined) break;
    const { step, served } = one;
    const taken = Object.values(step.input_map).flatMap((tensor) => known.get(tensor) ?? []);
    const level = Math.max(0, ...taken.map((tensor) => tensor.level));
    checkLevel(name, served, level, planned);
    const place = planned.push({
      served,
      inputs: served.inputs.flatMap((spec) => {
        const from = step.input_map[spec.name];
        return from === undefined ? [] : { spec, from };
      }),
      outputs: Object.entries(step.output_map).map(([output, to]) => ({ name: output, to })),
      after: [...new Set(taken.flatMap((tensor) => (tensor.level === level ? (tensor.by ?? []) : [])))].filter(
        (by) => planned[by]?.level === level,
      ),
      level,
      startsAnew: level > 0 && served.sequence?.iterative === true,
    });
    const written = { level: served.decoupled === true ? level + 1 : level, by: place - 1 };
    for (const tensor of Object.values(step.output_map)) known.set(tensor, written);
  }
  return planned;
}

/** @throws LoadError if a step cannot run at this level */
function checkLevel(ensemble: string, served: ServedModel, level: number, planned: readonly PlannedStep[]): void {
  const other = planned.find((step) => step.level === level && step.served.decoupled === true);
  if (served.decoupled === true && other !== undefined) {
    const both = `inputs originated from different decoupled models, '${other.served.name}' and '${served.name}'`;
    throw new LoadError(`in ensemble ${ensemble}, a step or an output receives ${both}`);
  }
  if (level === 0 || served.sequence === undefined || served.sequence.iterative === true) return;
  const why = "one request would be many steps of its sequence";
  throw new LoadError(
    `in ensemble ${ensemble}, model ${served.name} has sequences and lies behind a decoupled model, which is not supported: ${why}`,
  );
}
