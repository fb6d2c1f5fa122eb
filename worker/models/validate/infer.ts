/**
 * Completes `sequence_batching` from the graph: finds the controls among the inputs, and the states
 * among the inputs and outputs. Only tensors that the configuration does not name count.
 */
import {
  configType,
  type ControlInput,
  type ModelConfig,
  type SequenceBatching,
  type SequenceControl,
  type SequenceState,
} from "#shared/model/config.js";
import type { GraphMetadata, GraphTensor } from "../../onnx/graph.js";
import { LoadError } from "../../thread/load-error.js";
import type { FoundAxis } from "./axes.js";
import { constantNames } from "./constants.js";
import { iterationOf } from "./iteration.js";
import { areCompatible, isStem, pairStates, type OwnDims, type Pair } from "./pairs.js";

/** The purposes of the tensors that the configuration does not name. */
export interface Inferred {
  readonly controls: readonly ControlInput[];
  readonly pairs: readonly Pair[];
}

/** @throws LoadError if it is unclear which tensors are states */
export function inferSequence(
  config: ModelConfig,
  sequence: SequenceBatching,
  graph: GraphMetadata,
  axisOf: (tensor: GraphTensor) => FoundAxis,
): Inferred {
  const { name, input, output, parameters } = config;
  const { again, answersWhen, feeds = [] } = iterationOf(config) ?? {};
  const named = new Set([
    ...feeds.map((feed) => feed.input),
    ...input.map((one) => one.name),
    ...sequence.control_input.map((one) => one.name),
    ...sequence.state.map((state) => state.input_name),
    ...constantNames(parameters),
  ]);
  const given = new Set([
    ...output.map((one) => one.name),
    ...sequence.state.map((state) => state.output_name),
    ...feeds.map((feed) => feed.output),
    again,
    answersWhen,
  ]);
  const unaccounted = graph.inputs.filter((tensor) => !named.has(tensor.name));
  const isControl = (tensor: GraphTensor): boolean => Object.hasOwn(controlNames, tensor.name);
  const inputs = unaccounted.filter((tensor) => !isControl(tensor));
  const outputs = graph.outputs.filter((tensor) => !given.has(tensor.name));
  const ownDims: OwnDims = (tensor) => {
    const axis = axisOf(tensor);
    // The tensor may belong to a state whose other tensor is not yet known. That tensor may still
    // show the batch axis.
    const isOpen = axis === "unclear" || (axis === "none" && tensor.dims.includes(-1));
    return isOpen ? undefined : withoutBatch(tensor, axis);
  };
  const keep = { keepInput: input.length === 0, keepOutput: output.length === 0 };
  const found = pairStates({ inputs, outputs, ...keep, ownDims });
  if (found.kind === "ambiguous") throw ambiguous(name, found.candidates);
  for (const tensor of inputs) {
    const paired = found.pairs.some((pair) => pair.input === tensor);
    if (!paired && (input.length > 0 || looksLikeState(tensor))) throw unpaired(name, tensor, outputs, ownDims);
  }
  return { controls: unaccounted.filter(isControl).map((tensor) => controlOf(name, tensor)), pairs: found.pairs };
}

const controlNames = {
  START: "CONTROL_SEQUENCE_START",
  READY: "CONTROL_SEQUENCE_READY",
  END: "CONTROL_SEQUENCE_END",
  CORRID: "CONTROL_SEQUENCE_CORRID",
} as const;

function controlOf(model: string, { name, datatype }: GraphTensor): ControlInput {
  const kind = controlNames[name as keyof typeof controlNames];
  const control: SequenceControl = {
    kind,
    int32_false_true: [],
    fp32_false_true: [],
    bool_false_true: [],
    data_type: "TYPE_INVALID",
  };
  if (kind === "CONTROL_SEQUENCE_CORRID") {
    return { name, control: [{ ...control, data_type: configType(datatype) }] };
  }
  if (datatype === "INT32") return { name, control: [{ ...control, int32_false_true: [0, 1] }] };
  if (datatype === "FP32") return { name, control: [{ ...control, fp32_false_true: [0, 1] }] };
  if (datatype === "BOOL") return { name, control: [{ ...control, bool_false_true: [false, true] }] };
  const types = `a control's type is TYPE_INT32, TYPE_FP32 or TYPE_BOOL, but the graph has ${configType(datatype)}`;
  throw new LoadError(`input '${name}' of ${model} has the name of a control: ${types}; list it under input instead`);
}

/**
 * Whether the name of an input suggests a state. Without an output for the next value the model
 * would forget the state at every step. Baton refuses such an input instead of asking clients for
 * it.
 */
function looksLikeState({ name }: GraphTensor): boolean {
  return /^[hc](_?0)?$|state|hidden|^past[._]|^prev_/i.test(name);
}

function ambiguous(model: string, candidates: readonly Pair[]): LoadError {
  const all = candidates.map(({ input, output }) => `'${input.name}' with '${output.name}'`).join(", ");
  const [first] = candidates;
  const example = first === undefined ? "" : blockOf(first.input, first.output);
  return new LoadError(
    `the states of ${model} are not clear: ${all} may be states, but not all of them can be. Write those that are ` +
      `into sequence_batching, such as ${example}, and the others under input and output`,
  );
}

function unpaired(model: string, tensor: GraphTensor, outputs: readonly GraphTensor[], ownDims: OwnDims): LoadError {
  const { name } = tensor;
  const near = outputs.filter((output) => isStem(name, output.name) && !areCompatible(tensor, output, ownDims));
  const differs = near.map(
    (output) => `; '${output.name}' is ${shapeText(output)}, and '${name}' ${shapeText(tensor)}`,
  );
  const write = `write ${blockOf(tensor, undefined)} into sequence_batching if it is one, or else list it under input`;
  return new LoadError(`no output of ${model} goes with input '${name}' as its state${differs.join("")}: ${write}`);
}

function shapeText({ datatype, dims }: GraphTensor): string {
  return `${configType(datatype)} [${dims.join(",")}]`;
}

/** The block to write for a state. Its dims leave the batch out. */
function blockOf({ name, datatype, dims }: GraphTensor, output: GraphTensor | undefined): string {
  const own = dims.includes(-1) ? dims.toSpliced(dims.indexOf(-1), 1) : dims;
  const shown = own.length > 0 ? own.join(", ") : "1";
  const to = output === undefined ? "<output>" : output.name;
  return `state { input_name: "${name}" output_name: "${to}" data_type: ${configType(datatype)} dims: [ ${shown} ] }`;
}

/**
 * @param axis of the batch in the input, and in the output
 * @param batching whether the state's dims leave the batch out; if not, the batch counts as one row
 * @throws LoadError if the state's size is not fixed, because its first value is then unknown
 */
export function stateOf(
  { input, output }: Pair,
  [inputAxis, outputAxis]: readonly [FoundAxis, FoundAxis],
  batching: boolean,
): SequenceState {
  const dims = stateDims(input, inputAxis, batching).map((dim, axis) => {
    return dim === -1 ? (stateDims(output, outputAxis, batching)[axis] ?? -1) : dim;
  });
  const data_type = configType(input.datatype);
  const state: SequenceState = {
    input_name: input.name,
    output_name: output.name,
    data_type,
    dims: dims.length > 0 ? dims : [1],
    initial_state: [],
    use_same_buffer_for_input_output: false,
    use_growable_memory: false,
  };
  return withBeginning(state, batching ? " without the batch" : "");
}

/**
 * Gives a state of variable size its first value. Triton would begin with one row of zeros, which
 * would be part of every answer. Only the past of a decoder has a clear beginning: it is empty, and
 * grows by one row with each step.
 *
 * @param of the axis that the dims leave out, for the text of the error
 * @throws LoadError if the first value of the state is unclear
 */
export function withBeginning(state: SequenceState, of: string): SequenceState {
  const { input_name, output_name, data_type, dims } = state;
  if (!dims.includes(-1)) return state;
  const empty = dims.map((dim) => (dim === -1 ? 0 : dim));
  if (dims.filter((dim) => dim === -1).length === 1 && /^past[._]/i.test(input_name)) {
    return { ...state, initial_state: [{ name: "empty", data_type, dims: empty, zero_data: true }] };
  }
  const type = `data_type: ${data_type}`;
  const initial = `initial_state { name: "initial" ${type} dims: [ ${empty.join(", ")} ] zero_data: true }`;
  const names = `input_name: "${input_name}" output_name: "${output_name}"`;
  throw new LoadError(
    `state '${input_name}' has no fixed size ([${dims.join(",")}]${of}): say what it begins with, such as ` +
      `state { ${names} ${type} dims: [ ${dims.join(", ")} ] ${initial} }`,
  );
}

/** In a model without batching, the batch axis has the size 1; all other sizes stay. */
function stateDims(tensor: GraphTensor, axis: FoundAxis, batching: boolean): readonly number[] {
  return batching || typeof axis !== "number" ? withoutBatch(tensor, axis) : tensor.dims.with(axis, 1);
}

export function withoutBatch({ dims }: GraphTensor, axis: FoundAxis): readonly number[] {
  return typeof axis === "number" ? dims.toSpliced(axis, 1) : dims;
}
