/**
 * Makes the requests of a configuration's `model_warmup`, as Triton does. A sample goes past the
 * batcher of sequences, so it may list the inputs that are controls and states. A control that it
 * leaves out is that of a sequence of one request, and a state is the initial state.
 */
import { fullShape, hasRows, type ServedModel, type TensorSpec } from "#shared/contract/announcement.js";
import type { Tensor } from "#shared/frame.js";
import { kserveType, type ModelConfig, type ModelWarmup, type WarmupInput } from "#shared/model/config.js";
import { datatypeBytes, elementCount } from "#shared/model/datatype.js";
import type { Held } from "../lane/holdings.js";
import { MAX_INPUT_BYTES, type WarmUpFiles } from "../models/warm-up-files.js";
import { LoadError } from "../thread/load-error.js";
import { madeUp, randomTensor } from "./made-up.js";
import type { ServingModel } from "./serving.js";

/** What a model runs before it serves, by its configuration. */
export interface Sample {
  readonly name: string;
  /** How often the batch runs. */
  readonly count: number;
  /** The model without the controls that the sample gives itself. */
  readonly model: ServingModel;
  readonly batch: readonly Held[];
}

/** @throws LoadError if a sample does not fit the model */
export function samplesOf(
  model: ServingModel,
  served: ServedModel,
  { model_warmup }: Pick<ModelConfig, "model_warmup">,
  files: WarmUpFiles,
): Sample[] {
  return model_warmup.filter(({ batch_size: size }) => size > 0).map((one) => sampleOf(model, served, one, files));
}

function sampleOf(
  model: ServingModel,
  served: ServedModel,
  { name, batch_size, count, inputs }: ModelWarmup,
  files: WarmUpFiles,
): Sample {
  const failed = (why: string) => new LoadError(`failed to run warmup sample '${name}': ${why}`);
  const most = Math.max(1, served.maxBatchSize);
  if (batch_size > most) throw failed(`its batch_size ${batch_size} is more than ${most}`);
  const listed = Object.keys(inputs);
  const missing = served.inputs
    .filter(({ name: one, optional }) => optional !== true && !Object.hasOwn(inputs, one))
    .map((spec) => `'${spec.name}'`);
  if (missing.length > 0) throw failed(`missing required input(s) [${missing.join(",")}]`);
  const specs = specsOf(model, served);
  const tensors = new Map(
    listed.map((input) => {
      const spec = specs.get(input);
      if (spec === undefined) throw failed(`unexpected inference input '${input}' for model '${served.name}'`);
      const made = tensorOf(spec, inputs[input] as WarmupInput, hasRows(served, spec), files, failed);
      checkShape(served, spec, made, failed);
      return [input, made];
    }),
  );
  const given = (names: readonly string[]) => names.flatMap((one) => tensors.get(one) ?? []);
  const controls = model.controls.map(({ tensor }) => tensor);
  const states = model.states.map(({ input, datatype, initialShape: shape, initial: data }) => {
    return tensors.get(input) ?? { name: input, datatype, shape, data };
  });
  const own = [...given(served.inputs.map((spec) => spec.name)), ...given(controls)];
  const batch = Array.from({ length: batch_size }, (_, sequence): Held => {
    const held = madeUp(served, { sequence, step: 1, last: 1, size: 1 }, states.length === 0 ? undefined : states);
    return { ...held, request: { ...held.request, tensors: own } };
  });
  const left = model.controls.filter(({ tensor }) => !tensors.has(tensor));
  return { name, count: Math.max(1, count), model: { ...model, controls: left }, batch };
}

/** The inputs that a sample may give: those of requests, controls and states. */
function specsOf({ controls, states }: ServingModel, { inputs }: ServedModel): ReadonlyMap<string, TensorSpec> {
  const all = [
    ...inputs,
    ...controls.map(({ tensor: name, datatype }) => ({ name, datatype, dims: [1] })),
    ...states.map(({ input: name, datatype, dims }) => ({ name, datatype, dims: [...dims] })),
  ];
  return new Map(all.map((spec) => [spec.name, spec]));
}

type Failed = (why: string) => LoadError;

function tensorOf(
  { name, datatype, dims: specDims }: TensorSpec,
  { data_type, dims, zero_data, random_data, input_data_file: file }: WarmupInput,
  rows: boolean,
  files: WarmUpFiles,
  failed: Failed,
): Tensor {
  if (data_type === "TYPE_INVALID" || kserveType(data_type) !== datatype) {
    throw failed(`inference input '${name}' data-type is '${data_type}', but the model expects '${datatype}'`);
  }
  if (dims.some((dim) => dim < 0)) {
    throw failed(`warmup setting expects all variable-size dimensions are specified for input '${name}'`);
  }
  // A configuration writes a scalar as [1].
  const own = specDims.length === 0 && dims.join() === "1" ? [] : dims;
  const shape = [...(rows ? [1] : []), ...own];
  // A zero of BYTES is an empty string: its length prefix, four zero bytes.
  const bytes = elementCount(shape) * (datatype === "BYTES" ? 4 : datatypeBytes[datatype]);
  if (!Number.isSafeInteger(bytes) || bytes > MAX_INPUT_BYTES) throw failed(`input '${name}' is too large`);
  if (file !== undefined) {
    const data = files.get(file) ?? Buffer.alloc(0);
    if (datatype === "BYTES") return { name, datatype, shape, data };
    if (data.length >= bytes) return { name, datatype, shape, data: data.subarray(0, bytes) };
    throw failed(
      `warmup setting expects ${bytes} bytes, but the data provided from ${file} only has ${data.length} bytes`,
    );
  }
  if (random_data !== undefined && datatype !== "BYTES") return randomTensor(name, datatype, shape);
  if (zero_data === undefined && random_data === undefined) {
    throw failed(`warmup setting expects input '${name}' to have input_data_type set`);
  }
  return { name, datatype, shape, data: Buffer.alloc(bytes) };
}

function checkShape(served: ServedModel, spec: TensorSpec, { shape }: Tensor, failed: Failed): void {
  const wanted = fullShape(served, spec);
  if (shape.length === wanted.length && wanted.every((dim, axis) => dim === -1 || dim === shape[axis])) return;
  const shapes = `Expected [${wanted.join(",")}], got [${shape.join(",")}]`;
  throw failed(`unexpected shape for input '${spec.name}' for model '${served.name}'. ${shapes}`);
}
