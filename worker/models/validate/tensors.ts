/**
 * Checks `input`, `output`, `batch_input` and `batch_output` by the configuration alone. Runs after
 * `completeFromGraph`, which may add such fields.
 */
import type { BatchInput, BatchOutput, ModelConfig, ModelInput, ModelOutput } from "#shared/model/config.js";
import { LoadError } from "../../thread/load-error.js";

/** @throws LoadError */
export function validateTensors(config: ModelConfig): void {
  for (const input of config.input) {
    validateShape("model input ", input, config.max_batch_size);
    if (input.format !== "FORMAT_NONE" && input.dims.length !== 3) {
      throw new LoadError("model input NHWC/NCHW require 3 dims");
    }
  }
  for (const output of config.output) validateShape("model output ", output, config.max_batch_size);
  const { control_input: controls = [], state: states = [] } = config.sequence_batching ?? {};
  refuseDuplicates(config.name, "input", [
    ...config.input.map(({ name }) => name),
    ...controls.map(({ name }) => name),
    ...states.map(({ input_name: name }) => name),
    ...config.batch_input.flatMap(({ target_name: names }) => names),
  ]);
  refuseDuplicates(
    config.name,
    "output",
    config.output.map(({ name }) => name),
  );
  refuseDuplicates(
    config.name,
    "state output",
    states.map(({ output_name: name }) => name),
  );
  refuseRaggedReshapes(config);
  for (const batch of config.batch_input) validateBatchInput(config, batch);
  for (const batch of config.batch_output) validateBatchOutput(config, batch);
}

function validateShape(role: string, tensor: ModelInput | ModelOutput, maxBatchSize: number): void {
  if (tensor.name === "") throw new LoadError(`${role}must specify 'name'`);
  const { dims, reshape } = tensor;
  const which = `${role}'${tensor.name}' `;
  if (tensor.data_type === "TYPE_INVALID") throw new LoadError(`${which}must specify 'data_type'`);
  if (dims.length === 0) throw new LoadError(`${which}must specify 'dims'`);
  const variable = "or -1 to indicate a variable-size dimension";
  if (reshape?.shape.length === 0 && maxBatchSize === 0) {
    const why = "as scalar tensors are not supported";
    throw new LoadError(`${which}cannot have empty reshape for non-batching model ${why}`);
  }
  if (!dims.every(isDim)) throw new LoadError(`${which}dimension must be integer >= 1, ${variable}`);
  if (!isCountable(dims)) throw new LoadError(`${which}has more elements than can be counted`);
  if (tensor.is_shape_tensor) throw new LoadError("shape tensors are only supported for TensorRT platform");
  if (tensor.is_non_linear_format_io) {
    throw new LoadError("Non-linear IO format is only supported for the TensorRT platform");
  }
  if (reshape === undefined) return;
  if (!reshape.shape.every(isDim)) {
    throw new LoadError(`${which}reshape dimensions must be integer >= 1, ${variable}`);
  }
  validateReshape(which, dims, reshape.shape);
  if (reshape.shape.length === 0 && dims.length > 1) {
    throw new LoadError(`${which}can have an empty reshape only from dims [1]`);
  }
}

/**
 * Between variable dimensions the products must agree: `[2, 4, -1, 6]` may become `[8, -1, 1, 6]`.
 */
function validateReshape(which: string, dims: readonly number[], shape: readonly number[]): void {
  const from = segments(dims);
  const to = segments(shape);
  if (from.length !== to.length) {
    const both = from.length > 1 && to.length > 1;
    const what = both ? "number of variable-size dimensions" : "size";
    throw new LoadError(`${which}has different ${what} for dims and reshape`);
  }
  if (from.some((size, index) => size !== to[index])) {
    throw new LoadError(`${which}has different size for dims and reshape`);
  }
}

/** Gives the product of each run of fixed dimensions. Every variable dimension ends a run. */
function segments(shape: readonly number[]): bigint[] {
  const products = [1n];
  for (const dim of shape) {
    if (dim === -1) products.push(1n);
    else products.push((products.pop() ?? 1n) * BigInt(dim));
  }
  return products;
}

function isDim(dim: number): boolean {
  return dim >= 1 || dim === -1;
}

/**
 * Whether a double holds the count of elements exactly, because all other code counts in doubles.
 */
export function isCountable(dims: readonly number[]): boolean {
  return Number.isSafeInteger(dims.reduce((product, dim) => product * Math.abs(dim), 1));
}

function refuseDuplicates(model: string, role: string, names: readonly string[]): void {
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(name)) throw new LoadError(`${role} '${name}' is specified more than once for ${model}`);
    seen.add(name);
  }
}

/**
 * Refuses to reshape the tensors of ragged batches: there the sizes of a tensor count, and clients
 * and the graph would mean different ones.
 */
function refuseRaggedReshapes({ input, output, batch_input, batch_output }: ModelConfig): void {
  const sources = [...batch_input, ...batch_output].flatMap(({ source_input: names }) => names);
  const targets = batch_output.flatMap(({ target_name: names }) => names);
  const refuse = (tensor: ModelInput | ModelOutput | undefined, role: string, field: string): void => {
    if (tensor !== undefined)
      throw new LoadError(`model ${role} '${tensor.name}' cannot have both reshape and ${field}`);
  };
  const inputs = input.filter(({ reshape }) => reshape !== undefined);
  refuse(
    inputs.find((one) => one.allow_ragged_batch),
    "input",
    "allow_ragged_batch",
  );
  refuse(
    inputs.find(({ name }) => sources.includes(name)),
    "input",
    "a batch_input or batch_output that reads its shape",
  );
  refuse(
    output.find(({ name, reshape }) => reshape !== undefined && targets.includes(name)),
    "output",
    "a batch_output",
  );
}

function validateBatchInput(config: ModelConfig, { kind, source_input: sources, data_type }: BatchInput): void {
  if (sources.length !== 1) {
    throw new LoadError(`batch input kind '${kind}' expects 1 source input, got ${sources.length}`);
  }
  if (data_type !== "TYPE_INT32" && data_type !== "TYPE_FP32") {
    throw new LoadError("batch input data type must be TYPE_INT32 or TYPE_FP32");
  }
  validateSources(config, sources);
}

function validateBatchOutput(config: ModelConfig, { kind, source_input: sources, target_name }: BatchOutput): void {
  if (sources.length !== 1) {
    throw new LoadError(`batch output kind '${kind}' expects 1 source input, got ${sources.length}`);
  }
  validateSources(config, sources);
  for (const [index, name] of target_name.entries()) {
    if (!config.output.some((output) => output.name === name)) {
      throw new LoadError(`unknown target output name '${name}'`);
    }
    if (target_name.indexOf(name) !== index) {
      throw new LoadError(`target output name '${name}' can only be specified once`);
    }
  }
}

function validateSources(config: ModelConfig, sources: readonly string[]): void {
  for (const source of sources) {
    if (!config.input.some(({ name }) => name === source)) {
      throw new LoadError(`unknown source input name '${source}'`);
    }
  }
}
