/**
 * Compares a complete configuration with the model's own inputs and outputs, as Triton's ONNX
 * backend does when it loads a model.
 */
import {
  configType,
  type DataType,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  type SequenceBatching,
  type SequenceControl,
  type SequenceState,
} from "#shared/model/config.js";
import { BATCH_AXIS, batchAxisOf } from "../../onnx/batch-axis.js";
import type { GraphMetadata, GraphTensor } from "../../onnx/graph.js";
import { LoadError } from "../../thread/load-error.js";
import { constantNames } from "./constants.js";
import { checkIteration } from "./iteration.js";

type Tensors = ReadonlyMap<string, GraphTensor>;
type Role = "input" | "output" | "input state" | "output state";

/** @throws LoadError */
export function validateAgainstGraph(config: ModelConfig, graph: GraphMetadata): void {
  const { input, output, sequence_batching: sequence } = config;
  const expected =
    input.filter(({ optional }) => !optional).length +
    (sequence?.control_input.flatMap(({ control }) => control).length ?? 0) +
    (sequence?.state.length ?? 0) +
    config.batch_input.flatMap(({ target_name: names }) => names).length +
    constantNames(config.parameters).length;
  if (expected !== graph.inputs.length) {
    const counts = `configuration expects ${expected} inputs, model provides ${graph.inputs.length}`;
    throw new LoadError(`unable to load model '${config.name}', ${counts}`);
  }
  if (output.length === 0) throw new LoadError(`unable to load model '${config.name}', must specify 'output'`);
  const inputs = byName([...graph.inputs, ...(graph.initializers ?? [])]);
  const outputs = byName(graph.outputs);
  for (const one of input) checkInput(config, one, inputs);
  for (const { target_name: names, data_type } of config.batch_input) {
    for (const name of names) checkType(config, "input", name, data_type, find("input", name, inputs));
  }
  for (const one of output) checkOutput(config, one, outputs);
  if (sequence !== undefined) checkSequence(config, sequence, inputs, outputs);
  checkIteration(config, graph);
}

/** The type of a boolean control follows from its list of values. */
function controlType({ kind, data_type, ...values }: SequenceControl): DataType {
  if (kind === "CONTROL_SEQUENCE_CORRID") return data_type;
  if (values.int32_false_true.length > 0) return "TYPE_INT32";
  return values.fp32_false_true.length > 0 ? "TYPE_FP32" : "TYPE_BOOL";
}

function checkInput(config: ModelConfig, input: ModelInput, inputs: Tensors): void {
  const unable = `unable to load model '${config.name}', `;
  if (input.optional && config.max_batch_size !== 0) {
    throw new LoadError(`${unable}optional input '${input.name}' is not supported for models that support batching`);
  }
  const tensor = find("input", input.name, inputs);
  checkType(config, "input", input.name, input.data_type, tensor);
  if (!input.allow_ragged_batch) {
    checkDims(config, input.name, input.reshape?.shape ?? input.dims, tensor, isShared(tensor) ? "shared" : fits);
    return;
  }
  const ragged = `${unable}configuration expects model provides input with shape [-1] for ragged input '${input.name}'`;
  if (input.optional) throw new LoadError(`${ragged}, which is not supported for optional input`);
  if (tensor.dims.length !== 1 || tensor.dims[0] !== -1) {
    throw new LoadError(`${ragged}, model provides ${shapeText(tensor.dims)}`);
  }
}

function checkOutput(config: ModelConfig, output: ModelOutput, outputs: Tensors): void {
  const tensor = find("output", output.name, outputs);
  checkType(config, "output", output.name, output.data_type, tensor);
  const scattered = config.batch_output.some(({ target_name: names }) => names.includes(output.name));
  if (!scattered) checkDims(config, output.name, output.reshape?.shape ?? output.dims, tensor, equals);
}

/** Checks the tensors that carry a sequence's controls and states. */
function checkSequence(config: ModelConfig, sequence: SequenceBatching, inputs: Tensors, outputs: Tensors): void {
  for (const { name, control } of sequence.control_input) {
    for (const one of control) checkControl(config, name, controlType(one), inputs.get(name));
  }
  for (const state of sequence.state) {
    checkState(config, state, "input", find("input", state.input_name, inputs));
    checkState(config, state, "output", find("output", state.output_name, outputs));
  }
}

function checkControl(config: ModelConfig, name: string, type: DataType, tensor: GraphTensor | undefined): void {
  if (tensor === undefined) {
    throw new LoadError(`configuration specified sequence control '${name}', but model does not provide that input`);
  }
  const which = `unable to load model '${config.name}', sequence control '${name}'`;
  const dims = config.max_batch_size > 0 ? tensor.dims.slice(1) : tensor.dims;
  if (dims.length !== 1 || dims[0] !== 1) {
    throw new LoadError(`${which} in model has dims ${shapeText(dims)} but dims [1] is expected`);
  }
  checkBatchDimension(config, name, tensor);
  if (configType(tensor.datatype) !== type) {
    const types = `the model expects data-type ${configType(tensor.datatype)}`;
    throw new LoadError(`${which}, ${types} but the model configuration specifies data-type ${type}`);
  }
}

function checkState(config: ModelConfig, state: SequenceState, side: "input" | "output", tensor: GraphTensor): void {
  const name = side === "input" ? state.input_name : state.output_name;
  checkType(config, `${side} state`, name, state.data_type, tensor);
  // A state of one number for each row has no dims, but a configuration must have some: [1].
  const bare = config.max_batch_size > 0 && tensor.dims.length === 1 && state.dims.join() === "1";
  checkDims(config, name, bare ? [] : state.dims, tensor, side === "input" ? fits : mayEqual);
}

function checkType(config: ModelConfig, role: Role, name: string, type: DataType, tensor: GraphTensor): void {
  if (configType(tensor.datatype) === type) return;
  const differs = `configuration expects datatype ${type} for ${role} '${name}'`;
  throw new LoadError(
    `unable to load model '${config.name}', ${differs}, model provides ${configType(tensor.datatype)}`,
  );
}

/** Whether a dimension of the graph agrees with the configuration's; -1 is variable. */
type Compare = (graph: number, configured: number) => boolean;
/** A configuration may narrow the sizes of an input, but not of an output. */
const fits: Compare = (graph, configured) => graph === -1 || graph === configured;
const equals: Compare = (graph, configured) => graph === configured;
/** A state may be of variable size on either side. */
const mayEqual: Compare = (graph, configured) => graph === -1 || configured === -1 || graph === configured;

function checkDims(
  config: ModelConfig,
  name: string,
  dims: readonly number[],
  tensor: GraphTensor,
  agree: Compare | "shared",
): void {
  const graph = tensor.dims;
  const batching = config.max_batch_size > 0;
  if (graph.length === 0 && (!batching || agree === "shared")) {
    if (dims.every((dim) => dim === 1)) return;
    const only = batching
      ? "should only provide 1 in the model configuration"
      : "should only provide 1 in the model configuration when the model doesn't support batching";
    throw new LoadError(
      `unable to load model '${config.name}', scalar tensor '${name}', ${only}. Model configuration provided: ${shapeText(dims)}.`,
    );
  }
  const shared = agree === "shared";
  if (!shared) checkBatchDimension(config, name, tensor);
  const compare = shared ? fits : agree;
  const axis = shared ? undefined : batchAxisOf(config, tensor);
  const full = axis === undefined ? dims : dims.toSpliced(axis, 0, -1);
  if (graph.length === full.length && graph.every((dim, at) => compare(dim, full[at] ?? 0))) return;
  if (shared && batching) {
    const share = "so all requests of a batch would share it, or else max_batch_size has to be 0";
    throw new LoadError(
      `model '${config.name}', tensor '${name}': no dimension of its shape ${shapeText(graph)} is of any size, ${share}; but the model configuration specifies shape ${shapeText(full)}`,
    );
  }
  const meaning =
    axis === 0
      ? "an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape"
      : `a batch dimension at axis ${axis ?? 0} because max_batch_size > 0 within the explicit tensor shape, making complete shape`;
  const given = axis === undefined ? `shape ${shapeText(full)}` : `${meaning} ${shapeText(full)}`;
  const expects = `the model expects ${graph.length} dimensions (shape ${shapeText(graph)})`;
  throw new LoadError(
    `model '${config.name}', tensor '${name}': ${expects} but the model configuration specifies ${full.length} dimensions (${given})`,
  );
}

/** Whether all requests of a batch share the input, because no axis is of variable size. */
function isShared({ dims }: GraphTensor): boolean {
  return !dims.includes(-1);
}

function checkBatchDimension(config: ModelConfig, name: string, tensor: GraphTensor): void {
  if (config.max_batch_size === 0 || batchAxisOf(config, tensor) !== undefined) return;
  const needed =
    "for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1";
  const instead = tensor.dims.includes(-1)
    ? `, or a parameter '${BATCH_AXIS}${name}' must name another one that is`
    : ". No dimension of it is, so max_batch_size has to be 0";
  throw new LoadError(
    `model '${config.name}', tensor '${name}': ${needed}; but shape expected by the model is ${shapeText(tensor.dims)}${instead}`,
  );
}

function find(role: "input" | "output", name: string, tensors: Tensors): GraphTensor {
  const tensor = tensors.get(name);
  if (tensor !== undefined) return tensor;
  const allowed = [...tensors.keys()].sort().join(", ");
  throw new LoadError(`unexpected inference ${role} '${name}', allowed ${role}s are: ${allowed}`);
}

function byName(tensors: readonly GraphTensor[]): Tensors {
  return new Map(tensors.map((tensor) => [tensor.name, tensor]));
}

function shapeText(shape: readonly number[]): string {
  return `[${shape.join(",")}]`;
}
