/**
 * Compares a request with its model. The checks come in Triton's order and words, so that of
 * several faults the client gets the same as from Triton. Workers need not repeat these checks.
 */
import { fullShape, hasRows, type ServedModel, type TensorSpec } from "#shared/contract/announcement.js";
import { refuserOf, type CorrelationId, type SequenceStep } from "#shared/contract/sequence.js";
import { datatypeBytes, elementCount } from "#shared/model/datatype.js";
import { elementFault, stringFault } from "#shared/model/strings.js";
import { isOneText } from "#shared/contract/texts.js";
import { InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { checkStepNumber } from "../../admission/request-terms.js";
import type { RequestParameters } from "./parameters.js";
import { checkClassification, limitClasses } from "./classification.js";
import { underItsTextName } from "./text-tensors.js";
import { requestPrefix, type ParsedInfer, type RequestedOutput } from "./request.js";

export interface ValidInfer {
  /** In the order of the model's inputs. */
  readonly inputs: readonly Tensor[];
  /** The requested outputs; never empty. */
  readonly outputs: readonly RequestedOutput[];
  readonly sequence: SequenceStep | undefined;
}

/** A request before the comparison with a model. */
export type Unchecked = Pick<ParsedInfer, "id" | "inputs" | "outputs" | "parameters">;

/** @throws InferenceError */
export function validateInfer(parsed: Unchecked, announced: ServedModel): ValidInfer {
  const model = underItsTextName(announced, parsed.inputs);
  const prefix = requestPrefix(parsed.id);
  const outputs = chooseOutputs(parsed, model);
  const inputs = orderInputs(parsed.inputs, model, prefix);
  const batch = batchSize(inputs, model, prefix);
  for (const [index, spec] of specsOf(inputs, model).entries()) {
    checkTensor(inputs[index] as Tensor, spec, model, prefix);
  }
  for (const tensor of inputs) checkBytes(tensor, model, prefix);
  limitClasses(outputs, model, batch);
  return { inputs, outputs, sequence: sequenceStep(parsed.parameters, model, batch, prefix) };
}

function refused(message: string): InferenceError {
  return new InferenceError("invalid_argument", message);
}

/**
 * Picks the outputs. Refuses an impossible encoding now: once the model has run, the sequence would
 * have taken the step and lost its result.
 */
function chooseOutputs(parsed: Unchecked, model: ServedModel): RequestedOutput[] {
  const requested: readonly RequestedOutput[] =
    parsed.outputs.length > 0
      ? parsed.outputs
      : model.outputs.map(({ name }) => ({ name, binary: parsed.parameters.binaryOutput }));
  return requested.map((output) => {
    const spec = model.outputs.find(({ name }) => name === output.name);
    if (spec === undefined) throw refused(`unexpected inference output '${output.name}' for model '${model.name}'`);
    if (output.classes !== undefined) checkClassification(spec);
    else if (!output.binary && (spec.datatype === "FP16" || spec.datatype === "BF16")) {
      throw notInJson(spec.datatype, output.name);
    }
    return output;
  });
}

/** Refuses to send a datatype as JSON that has no form in JSON. */
export function notInJson(datatype: "FP16" | "BF16", output: string): InferenceError {
  return refused(
    `sending ${datatype} data via JSON is not supported. Please use the binary data format for output ${output}`,
  );
}

function orderInputs(given: readonly Tensor[], model: ServedModel, prefix: string): Tensor[] {
  const { inputs } = model;
  if (given.length !== inputs.length || inputs.some(isOptional)) checkCount(given, model, prefix);
  for (const { name } of given) {
    if (!inputs.some((spec) => spec.name === name)) {
      throw refused(`unexpected inference input '${name}' for model '${model.name}'`);
    }
  }
  // All inputs of the request are known, none is there twice, and only optional ones are missing.
  return inputs.flatMap((spec) => {
    const tensor = given.find(({ name }) => name === spec.name);
    return tensor === undefined ? [] : asGraph(tensor, spec);
  });
}

function isOptional({ optional }: TensorSpec): boolean {
  return optional === true;
}

/** @throws InferenceError if the request has too many inputs, or lacks one */
function checkCount(given: readonly Tensor[], { name: model, inputs }: ServedModel, prefix: string): void {
  const most = inputs.length;
  const required = inputs.filter((spec) => !isOptional(spec)).map(({ name }) => name);
  const got = given.map(({ name }) => name);
  const missing = required.filter((name) => !got.includes(name));
  // An unknown input in place of a required one has an error of its own.
  const isRight = got.length <= most && got.length >= required.length;
  if (isRight && (missing.length === 0 || !got.every((name) => inputs.some((spec) => spec.name === name)))) return;
  const quoted = (names: readonly string[]): string => `[${names.map((name) => `'${name}'`).join(",")}]`;
  const wanted =
    required.length === most ? `${most} inputs` : `number of inputs between ${required.length} and ${most}`;
  throw refused(
    `${prefix}expected ${wanted} but got ${got.length} inputs for model '${model}'. ` +
      `Got input(s) ${quoted(got)}, but missing required input(s) ${quoted(missing)}. Please provide all required input(s).`,
  );
}

/** The inputs of the model that a request gives. */
function specsOf(given: readonly Tensor[], { inputs }: ServedModel): readonly TensorSpec[] {
  if (given.length === inputs.length) return inputs;
  return inputs.filter((spec) => given.some(({ name }) => name === spec.name));
}

/** Treats one element as a scalar, because Triton's clients know no shape [] and send [1]. */
function asGraph(tensor: Tensor, { dims }: TensorSpec): Tensor {
  const isElement = dims.length === 0 && tensor.shape.length === 1 && tensor.shape[0] === 1;
  return isElement ? { ...tensor, shape: [] } : tensor;
}

/** Returns the batch size; 0 for a model without a batch dimension. */
function batchSize(inputs: readonly Tensor[], model: ServedModel, prefix: string): number {
  if (model.maxBatchSize === 0) return 0;
  let batch: number | undefined;
  for (const [index, { name, shape }] of inputs.entries()) {
    const spec = model.inputs[index];
    if (spec !== undefined && !hasRows(model, spec)) continue;
    const [own] = shape;
    if (own === undefined) {
      throw refused(`${prefix}input '${name}' has no shape but model requires batch dimension for '${model.name}'`);
    }
    batch ??= own;
    if (own !== batch) {
      throw refused(`${prefix}input '${name}' batch size does not match other inputs for '${model.name}'`);
    }
  }
  const size = batch ?? 1;
  if (size < 1) throw refused(`${prefix}inference request batch-size must be >= 1 for '${model.name}'`);
  if (size > model.maxBatchSize) {
    throw refused(`${prefix}inference request batch-size must be <= ${model.maxBatchSize} for '${model.name}'`);
  }
  return size;
}

const batchNote =
  "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each " +
  "input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting " +
  "max_batch_size to zero. See the model configuration docs for more info on max_batch_size.";

function checkTensor(tensor: Tensor, spec: TensorSpec, model: ServedModel, prefix: string): void {
  if (tensor.datatype !== spec.datatype) {
    throw refused(
      `${prefix}inference input '${spec.name}' data-type is '${tensor.datatype}', but model '${model.name}' expects '${spec.datatype}'`,
    );
  }
  const batching = hasRows(model, spec);
  const { shape } = tensor;
  const first = batching ? 1 : 0;
  const fits =
    model.generator === undefined
      ? shape.length === spec.dims.length + first &&
        spec.dims.every((dim, index) => dim === -1 || dim === shape[index + first])
      : isOneText(shape);
  if (fits) return;
  throw refused(
    `${prefix}unexpected shape for input '${spec.name}' for model '${model.name}'. ` +
      `Expected [${fullShape(model, spec).join(",")}], got [${shape.join(",")}]. ${batching ? batchNote : ""}`,
  );
}

function checkBytes({ name, datatype, shape, data }: Tensor, model: ServedModel, prefix: string): void {
  const count = elementCount(shape);
  if (datatype === "BYTES") {
    // Only ONNX models refuse some strings; a generator reads any text, NUL included.
    const fault =
      bytesFault(data, count, name, model.name) ??
      (model.generator === undefined ? stringsFault(data, name, model.name) : undefined);
    if (fault !== undefined) throw refused(prefix + fault);
    return;
  }
  const expected = count * datatypeBytes[datatype];
  if (data.length !== expected) {
    throw refused(
      `${prefix}input byte size mismatch for input '${name}' for model '${model.name}'. Expected ${expected}, got ${data.length}`,
    );
  }
}

/**
 * Describes the fault of a BYTES tensor, whose length prefixes come from the client; undefined if
 * there is none. Walks once over the bytes: no allocation and no loop depends on a count or a
 * length that the client merely declares.
 */
function bytesFault(data: Buffer, count: number, input: string, model: string): string | undefined {
  const where = `inference input '${input}' for model '${model}'`;
  let elements = 0;
  for (let at = 0; at < data.length; elements++) {
    const left = data.length - at;
    if (elements === count)
      return `unexpected number of string elements ${elements + 1} for ${where}, expecting ${count}`;
    if (left < 4) {
      return (
        `incomplete string length indicator for ${where}, expecting 4 bytes but only ${left} bytes available. ` +
        "Please make sure the string length indicator is in one buffer."
      );
    }
    const length = data.readUInt32LE(at);
    if (length > left - 4) {
      return `incomplete string data for ${where}, expecting string of length ${length} but only ${left - 4} bytes available.`;
    }
    at += 4 + length;
  }
  return elements === count ? undefined : `expected ${count} string elements for ${where}, got ${elements}`;
}

/**
 * Describes the first string of a well-formed BYTES tensor that cannot reach an ONNX model
 * unchanged; undefined if there is none.
 */
function stringsFault(data: Buffer, input: string, model: string): string | undefined {
  const found = elementFault(data);
  if (found === undefined) return undefined;
  return `string element ${found.index} of inference input '${input}' for model '${model}' ${found.fault}`;
}

/**
 * Reads the step of a sequence. A model without sequences ignores these parameters, except the
 * number of a step, and so does a request without an id to an iterative model. Checks the type of
 * the id before its presence, because a request without an id has the uint64 0.
 */
function sequenceStep(
  { sequenceId: id, sequenceStart: start, sequenceEnd: end, sequenceStep: number }: RequestParameters,
  model: ServedModel,
  batch: number,
  prefix: string,
): SequenceStep | undefined {
  const isAlone = model.sequence?.iterative === true && (id.value === 0n || id.value === "");
  if (model.sequence === undefined || (isAlone && batch <= 1)) {
    checkStepNumber(number, undefined);
    return undefined;
  }
  if (batch > 1) {
    checkIdKind(model, id, prefix);
    const { where, model: refuser } = refuserOf(model);
    throw refused(
      `${where}inference request to model '${refuser}' must specify batch-size 1 due to requirements of sequence batcher`,
    );
  }
  checkSequenceId(model, id, prefix);
  checkStepNumber(number, { start });
  const mayBegin = !start && model.sequence.implicitStart === true;
  return { id, start, end, ...(mayBegin && { mayBegin }), ...(number !== undefined && { number }) };
}

/** Checks that the id has the datatype of the model's control input. */
function checkIdKind(model: ServedModel, id: CorrelationId, prefix: string): void {
  const control = model.sequence?.corrid;
  if (control !== undefined && (id.kind === "string") !== (control.datatype === "BYTES")) {
    throw refused(
      `${prefix}sequence batching control '${control.tensor}' data-type is '${controlDatatype(id)}', but model '${model.name}' expects '${control.datatype}'`,
    );
  }
}

/**
 * @param prefix of the refusal's text
 * @throws InferenceError if the id can name no sequence of the model
 */
export function checkSequenceId(model: ServedModel, id: CorrelationId, prefix = ""): void {
  checkIdKind(model, id, prefix);
  if (id.value === 0n || id.value === "") {
    const { where, model: refuser } = refuserOf(model);
    throw refused(
      `${where}inference request to model '${refuser}' must specify a non-zero or non-empty correlation ID`,
    );
  }
  const control = model.sequence?.corrid;
  const fault = control?.datatype === "BYTES" ? stringFault(Buffer.from(String(id.value))) : undefined;
  if (fault !== undefined) {
    const where = `sequence batching control '${control?.tensor}' of model '${model.name}'`;
    throw refused(`${prefix}the correlation ID for ${where} ${fault}`);
  }
}

function controlDatatype(id: CorrelationId): "UINT64" | "BYTES" {
  return id.kind === "uint64" ? "UINT64" : "BYTES";
}
