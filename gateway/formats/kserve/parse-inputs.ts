/**
 * Turns the member `inputs` into tensors. Each input names its shape and datatype, and brings its
 * data as JSON or as bytes that follow the JSON.
 */
import { datatypeBytes, elementCount, isDatatype, type Datatype } from "#shared/model/datatype.js";
import { hasRows, type ServedModel } from "#shared/contract/announcement.js";
import type { JsonObject } from "#shared/json/parse.js";
import { TensorData } from "#shared/json/tensor-data.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { jsonToRaw } from "./tensors-json.js";
import type { Limits } from "../limits.js";
import { maxInputs, maxRank, maxTensorBytes, requestPrefix } from "./request.js";
import { asArray, asSize, asString, isObject, optionalObject, required, unparsable } from "#shared/json/members.js";

/** Whether a member is `inputs[].data`, which holds the data of a tensor in an infer request. */
export function isInputData(name: string, depth: number, branch: string): boolean {
  return depth === 3 && name === "data" && branch === "inputs";
}

/**
 * @param binary the bytes that follow the JSON
 * @param model name of the model, for refusals
 * @param prefix beginning of the refusals
 * @throws InferenceError
 */
export function parseInputs(
  request: JsonObject,
  binary: Buffer,
  model: string,
  prefix: string,
  limits: Limits,
): Tensor[] {
  const list = asArray(required(request, "inputs"), "inputs");
  if (list.length > maxInputs) throw refused(`${list.length} inputs are more than the limit of ${maxInputs}`);
  const names = new Set<string>();
  let offset = 0;
  const tensors = list.map((item) => {
    if (!isObject(item)) throw unparsable("inputs", "object");
    const name = asString(required(item, "name"), "name");
    const shape = parseShape(name, item);
    const datatype = parseDatatype(name, item);
    if (names.has(name)) throw refused(`${prefix}input '${name}' already exists in request`);
    names.add(name);
    checkSize(name, datatype, shape);
    const source = dataSource(name, item);
    if (source.kind === "json") {
      const data = jsonToRaw(name, datatype, source.data, elementCount(shape), limits.jsonBytes);
      return { name, datatype, shape, data };
    }
    const end = offset + source.bytes;
    if (end > binary.length) {
      const missing = end - binary.length;
      throw refused(`unexpected size for input '${name}', expecting ${missing} additional bytes for model '${model}'`);
    }
    const data = binary.subarray(offset, end);
    offset = end;
    return { name, datatype, shape, data };
  });
  if (offset < binary.length) throw refused(`unexpected additional input data for model '${model}'`);
  return tensors;
}

type Source =
  { readonly kind: "json"; readonly data: TensorData } | { readonly kind: "binary"; readonly bytes: number };

function dataSource(name: string, item: JsonObject): Source {
  const parameters = optionalObject(item, "parameters");
  const size = parameters?.["binary_data_size"];
  const region = parameters?.["shared_memory_region"];
  const given = [item["data"], size, region].filter((source) => source !== undefined).length;
  if (given > 1) {
    throw refused(
      `input '${name}' must have exactly one of 'data', 'binary_data_size' and 'shared_memory_region', got ${given}`,
    );
  }
  if (region !== undefined) throw fixedError("unsupported", "sharedMemory");
  if (size !== undefined) return { kind: "binary", bytes: asSize(size, "binary_data_size") };
  const data = required(item, "data");
  if (!(data instanceof TensorData && data.isArray)) throw unparsable("data", "array");
  return { kind: "json", data };
}

function parseShape(name: string, item: JsonObject): number[] {
  const shape = asArray(required(item, "shape"), "shape");
  if (shape.length > maxRank) throw refused(`input '${name}' has rank ${shape.length}, the limit is ${maxRank}`);
  return shape.map((dim) => asSize(dim, "shape"));
}

function parseDatatype(name: string, item: JsonObject): Datatype {
  const datatype = asString(required(item, "datatype"), "datatype");
  if (!isDatatype(datatype)) throw refused(`invalid datatype for input ${name}`);
  return datatype;
}

/**
 * Refuses shapes of tensors that are too large. Every partial product stays below the limit, so
 * none loses precision. A later 0 would make the whole small again, but that is no reason to accept
 * 2^32 x 2^32. A BYTES element takes at least four bytes.
 */
export function checkSize(name: string, datatype: Datatype, shape: readonly number[]): void {
  let bytes = datatypeBytes[datatype] || 4;
  for (const dim of shape) {
    bytes *= Math.max(dim, 1);
    if (bytes > maxTensorBytes) throw refused(`input '${name}' is larger than the limit of ${maxTensorBytes} bytes`);
  }
}

function refused(message: string): InferenceError {
  return new InferenceError("invalid_argument", message);
}

/**
 * Makes the tensor of a request with `Inference-Header-Content-Length: 0`. The body is the bytes of
 * the only input, and the shape follows from the model's shape.
 * @throws InferenceError
 */
export function rawInput(body: Buffer, model: ServedModel): Tensor {
  const [input, ...others] = model.inputs;
  if (input === undefined || others.length > 0) {
    throw refusedRaw(
      `Raw request must only have 1 input (found 1) to be deduced but got ${model.inputs.length} inputs in '${model.name}' model configuration`,
    );
  }
  const { name, datatype, dims } = input;
  const batch = hasRows(model, input) ? [1] : [];
  if (datatype === "BYTES") {
    if (dims.length !== 1 || dims[0] !== 1) {
      throw refusedRaw(`For BYTE datatype raw input '${name}', the model must have input shape [1]`);
    }
    const data = Buffer.allocUnsafe(4 + body.length);
    data.writeUInt32LE(body.length, 0);
    body.copy(data, 4);
    return { name, datatype, shape: [...batch, 1], data };
  }
  const wild = dims.filter((dim) => dim === -1).length;
  if (wild > 1) {
    throw refusedRaw(
      `The shape of the raw input '${name}' can not be deduced because there are more than one variable-sized dimension`,
    );
  }
  const unit = datatypeBytes[datatype] * elementCount(dims.filter((dim) => dim !== -1));
  if (wild === 1 && (unit === 0 || body.length % unit !== 0)) {
    throw refusedRaw(
      `unexpected total byte size ${body.length} for raw input '${name}', expecting multiple of ${unit}`,
    );
  }
  const shape = [...batch, ...dims.map((dim) => (dim === -1 ? body.length / unit : dim))];
  return { name, datatype, shape, data: body };
}

function refusedRaw(message: string): InferenceError {
  return refused(requestPrefix("") + message);
}
