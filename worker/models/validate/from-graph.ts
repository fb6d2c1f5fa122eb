/**
 * Fills in absent fields of a configuration from the model's own graph. Triton fills in inputs,
 * outputs and `max_batch_size`; Baton adds states, controls and batch axes. The completion from the
 * directory (complete.ts) runs before and again after this step. An explicit `max_batch_size: 0`
 * looks like an absent field, so this step may raise the value, as in Triton.
 */
import {
  configType,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  type SequenceState,
} from "#shared/model/config.js";
import { BATCH_AXIS } from "../../onnx/batch-axis.js";
import type { GraphMetadata, GraphTensor } from "../../onnx/graph.js";
import { LoadError } from "../../thread/load-error.js";
import { axisFinder, type FoundAxis, type Known } from "./axes.js";
import { constantNames } from "./constants.js";
import { inferSequence, stateOf, type Inferred } from "./infer.js";
import { iterationOf } from "./iteration.js";

export interface CompletionOptions {
  /** Whether the graph may fill in inputs, outputs, states and batching. */
  readonly autoComplete: boolean;
  /** The `max_batch_size` if the graph can batch and the configuration has no value. */
  readonly defaultMaxBatchSize: number;
}

/** The values that Triton uses. */
export const defaultCompletion: CompletionOptions = { autoComplete: true, defaultMaxBatchSize: 4 };

/** @throws LoadError if the graph does not support the configuration */
export function completeFromGraph(config: ModelConfig, graph: GraphMetadata, options: CompletionOptions): ModelConfig {
  const { sequence_batching: sequence } = config;
  if (!options.autoComplete) return withAxes(config, new Roles(config, graph, nothing));
  const plain = new Roles(config, graph, nothing);
  const inferred =
    sequence === undefined ? nothing : inferSequence(config, sequence, graph, (tensor) => plain.axis(tensor));
  const roles = new Roles(config, graph, inferred);
  const isListed = (config.input.length > 0 || config.batch_input.length > 0) && config.output.length > 0;
  const size = isListed ? config.max_batch_size : batchSize(config, roles, options);
  const batching = size > 0;
  const states = inferred.pairs.map((pair) => {
    const axisOf = (tensor: GraphTensor) => (batching ? clearAxis(config, tensor, roles) : roles.axis(tensor));
    return stateOf(pair, [axisOf(pair.input), axisOf(pair.output)], batching);
  });
  const complete = {
    ...config,
    max_batch_size: size,
    ...(sequence && {
      sequence_batching: {
        ...sequence,
        control_input: [...sequence.control_input, ...inferred.controls],
        state: [...sequence.state, ...states],
      },
    }),
  };
  if (isListed) return withAxes(complete, roles);
  const scheduled = config.dynamic_batching ?? sequence ?? config.ensemble_scheduling;
  return withAxes(
    {
      ...complete,
      input: config.input.length > 0 ? config.input : roles.inputs.map((tensor) => inputOf(tensor, roles, batching)),
      output:
        config.output.length > 0 ? config.output : roles.outputs.map((tensor) => outputOf(tensor, roles, batching)),
      ...(size > 1 && scheduled === undefined && { dynamic_batching: plainDynamicBatching }),
    },
    roles,
  );
}

const nothing: Inferred = { controls: [], pairs: [] };

/** The meaning of `dynamic_batching {}`. */
const plainDynamicBatching = {
  preferred_batch_size: [],
  max_queue_delay_microseconds: 0,
  preserve_ordering: false,
  priority_levels: 0,
  default_priority_level: 0,
  priority_queue_policy: {},
} as const;

/** The purpose of each tensor of a graph, and its batch axis. */
class Roles {
  /** The clients' inputs: all but controls, states and constants. */
  readonly inputs: readonly GraphTensor[];
  /** The clients' outputs: all but states, and the flags that say how requests run again. */
  readonly outputs: readonly GraphTensor[];
  readonly constants: readonly GraphTensor[];
  /** The inputs and outputs of all states, as far as the graph has them. */
  readonly states: readonly GraphTensor[];
  readonly #config: ModelConfig;
  readonly #find;
  /**
   * The configuration's facts about a tensor, and for a state's tensor also the state's other
   * tensor.
   */
  readonly #known = new Map<GraphTensor, Known>();

  constructor(config: ModelConfig, graph: GraphMetadata, { controls, pairs }: Inferred) {
    const { sequence_batching: sequence, parameters } = config;
    this.#config = config;
    const states = new Set<GraphTensor>();
    const isControl = (name: string): boolean =>
      [...(sequence?.control_input ?? []), ...controls].some((control) => control.name === name);
    const isMade = (name: string): boolean => config.batch_input.some(({ target_name: made }) => made.includes(name));
    const isConstant = (name: string): boolean => constantNames(parameters).includes(name);
    for (const { input, output } of pairs) this.#addState(states, input, output, undefined);
    for (const state of sequence?.state ?? []) {
      const input = graph.inputs.find(({ name }) => name === state.input_name);
      const output = graph.outputs.find(({ name }) => name === state.output_name);
      if (input !== undefined && output !== undefined) this.#addState(states, input, output, state);
    }
    this.#find = axisFinder(graph, states);
    this.states = [...states];
    this.constants = graph.inputs.filter(({ name }) => isConstant(name));
    this.inputs = graph.inputs.filter(
      (tensor) => !states.has(tensor) && !isControl(tensor.name) && !isConstant(tensor.name) && !isMade(tensor.name),
    );
    const { again, answersWhen } = iterationOf(config) ?? {};
    const isInner = (name: string): boolean =>
      (name === again || name === answersWhen) && !config.output.some((one) => one.name === name);
    this.outputs = graph.outputs.filter((tensor) => !states.has(tensor) && !isInner(tensor.name));
    for (const [tensors, listed] of [
      [graph.inputs, config.input],
      [graph.outputs, config.output],
    ] as const) {
      for (const { name, dims, reshape } of listed) {
        const tensor = tensors.find((one) => one.name === name);
        if (tensor !== undefined && !states.has(tensor)) this.#known.set(tensor, { dims: reshape?.shape ?? dims });
      }
    }
  }

  axis(tensor: GraphTensor): FoundAxis {
    return this.#find(tensor, { named: this.#named(tensor), ...this.#known.get(tensor) });
  }

  #named({ name }: GraphTensor): number | undefined {
    const named = this.#config.parameters[BATCH_AXIS + name]?.string_value;
    return named === undefined ? undefined : Number(named);
  }

  #addState(states: Set<GraphTensor>, input: GraphTensor, output: GraphTensor, told: SequenceState | undefined): void {
    for (const [tensor, other] of [[input, output] as const, [output, input] as const]) {
      const partner = { tensor: other, known: { named: this.#named(other), dims: told?.dims } };
      this.#known.set(tensor, { dims: told?.dims, partner });
    }
    states.add(input).add(output);
  }
}

/**
 * Finds the `max_batch_size` of a configuration without one. Triton batches a graph if the first
 * axis of every tensor is the batch. If the configuration asks for batches or sequences, any axis
 * may be the batch, and some inputs may have none.
 *
 * @throws LoadError if the configuration asks for batches and the graph has none
 */
function batchSize(config: ModelConfig, roles: Roles, { defaultMaxBatchSize }: CompletionOptions): number {
  const { max_batch_size: size, sequence_batching: sequence, name } = config;
  const { inputs, outputs, states } = roles;
  const must = [...outputs, ...states];
  const first = [...inputs, ...must].every(({ dims }) => dims[0] === -1);
  if (!first && size === 0 && sequence === undefined) return 0;
  const unbatched = must.filter((tensor) => roles.axis(tensor) === "none");
  const isInputBatched = inputs.length === 0 || inputs.some((tensor) => roles.axis(tensor) !== "none");
  if (unbatched.length === 0 && isInputBatched) return size === 0 ? defaultMaxBatchSize : size;
  if (size === 0) return 0;
  const why = "model does not support batching while non-zero max_batch_size is specified";
  const without = unbatched.length > 0 ? unbatched : inputs;
  const shapes = without.map(({ name, dims }) => `'${name}' [${dims.join(",")}]`).join(", ");
  const variable = without.find(({ dims }) => dims.includes(-1));
  const instead =
    variable === undefined
      ? "has no dimension of any size"
      : `has no dimension that is clearly the batch, so max_batch_size has to be 0, unless a parameter names one, such as ${axisBlock(variable)}`;
  throw new LoadError(`autofill failed for model '${name}': ${why}: ${shapes} ${instead}`);
}

/**
 * Adds every batch axis that is not the first axis to the configuration's parameters. All later
 * readers find the axis there.
 *
 * @throws LoadError
 */
function withAxes(config: ModelConfig, roles: Roles): ModelConfig {
  const { name, max_batch_size: size, parameters } = config;
  const ragged = new Set([
    ...config.input.filter((input) => input.allow_ragged_batch).map((input) => input.name),
    ...config.batch_output.flatMap(({ target_name: names }) => names),
  ]);
  const all = [...roles.inputs, ...roles.outputs, ...roles.states, ...roles.constants];
  const tensors = all.filter((tensor) => !ragged.has(tensor.name));
  for (const key of Object.keys(parameters).filter((one) => one.startsWith(BATCH_AXIS))) {
    checkNamed(key.slice(BATCH_AXIS.length), Number(parameters[key]?.string_value), tensors);
    if (size === 0) throw new LoadError(`parameters['${key}'] needs a max_batch_size, which ${name} does not have`);
  }
  if (size === 0) return config;
  const listed = new Set([...config.input, ...config.output].map((one) => one.name));
  const axes = Object.fromEntries(
    tensors.flatMap((tensor) => {
      const axis = roles.axis(tensor);
      const unused = roles.outputs.includes(tensor) && !listed.has(tensor.name);
      if (unused || axis === 0 || axis === "none") return [];
      clearAxis(config, tensor, roles);
      return [[BATCH_AXIS + tensor.name, { string_value: String(axis) }]];
    }),
  );
  return { ...config, parameters: { ...parameters, ...axes } };
}

function checkNamed(name: string, axis: number, tensors: readonly GraphTensor[]): void {
  const key = `parameters['${BATCH_AXIS}${name}']`;
  const tensor = tensors.find((one) => one.name === name);
  if (tensor === undefined) {
    const names = tensors.map((one) => one.name).sort();
    throw new LoadError(`${key}: the graph's tensors with a batch axis are ${names.join(", ")}`);
  }
  if (tensor.dims[axis] === -1) return;
  const shape = `'${name}' has the shape [${tensor.dims.join(",")}]`;
  throw new LoadError(`${key} is ${axis}, but ${shape}, where a batch axis must be of any size (-1)`);
}

/** @throws LoadError if no fact shows the tensor's batch axis */
function clearAxis({ name: model }: ModelConfig, tensor: GraphTensor, roles: Roles): FoundAxis {
  const axis = roles.axis(tensor);
  if (axis !== "unclear") return axis;
  const { name, dims } = tensor;
  throw new LoadError(
    `which axis of '${name}' [${dims.join(",")}] is the batch of ${model} is not clear: write it, such as ${axisBlock(tensor)}`,
  );
}

function axisBlock({ name, dims }: GraphTensor): string {
  return `parameters { key: "${BATCH_AXIS}${name}" value: { string_value: "${dims.indexOf(-1)}" } }`;
}

/**
 * Describes a graph's tensor in the form of a configuration. A scalar becomes `[1]`; with a batch
 * dimension a reshape removes this axis again.
 */
function tensorOf(tensor: GraphTensor, roles: Roles, batching: boolean) {
  const { name, datatype, dims } = tensor;
  const axis = batching ? roles.axis(tensor) : "none";
  const shape = typeof axis === "number" ? dims.toSpliced(axis, 1) : dims;
  const scalar = shape.length === 0;
  return {
    name,
    data_type: configType(datatype),
    dims: scalar ? [1] : shape,
    ...(scalar && typeof axis === "number" && { reshape: { shape: [] } }),
    is_shape_tensor: false,
    is_non_linear_format_io: false,
  };
}

function inputOf(tensor: GraphTensor, roles: Roles, batching: boolean): ModelInput {
  return { ...tensorOf(tensor, roles, batching), format: "FORMAT_NONE", allow_ragged_batch: false, optional: false };
}

function outputOf(tensor: GraphTensor, roles: Roles, batching: boolean): ModelOutput {
  return { ...tensorOf(tensor, roles, batching), label_filename: "" };
}
