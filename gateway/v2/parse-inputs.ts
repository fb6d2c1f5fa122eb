/** `inputs` to tensors: each names its shape and datatype and brings its data as JSON or as bytes that follow the JSON. */
import { datatypeBytes, elementCount, isDatatype, type Datatype } from "#shared/model/datatype.js";
import type { JsonObject } from "#shared/json/parse.js";
import { TensorData } from "#shared/json/tensor-data.js";
import { InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { jsonToRaw } from "./json-to-raw.js";
import { maxInputs, maxRank, maxTensorBytes, type Limits } from "./limits.js";
import { asArray, asSize, asString, isObject, optionalObject, required, unparsable } from "./members.js";

/** Where an infer request has its tensors' data: `inputs[].data`. */
export function isInputData(name: string, depth: number, branch: string): boolean {
  return depth === 3 && name === "data" && branch === "inputs";
}

export function parseInputs(
  request: JsonObject,
  binary: Buffer,
  model: string,
  requestPrefix: string,
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
    if (names.has(name)) throw refused(`${requestPrefix}input '${name}' already exists in request`);
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
  if (region !== undefined) throw sharedMemoryDisabled();
  if (size !== undefined) return { kind: "binary", bytes: asSize(size, "binary_data_size") };
  const data = required(item, "data");
  if (!(data instanceof TensorData && data.isArray)) throw unparsable("data", "array");
  return { kind: "json", data };
}

export function sharedMemoryDisabled(): InferenceError {
  return new InferenceError(
    "unsupported",
    "Client shared memory is disabled. Send tensors in the request and take them from the response.",
  );
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
 * Every partial product stays below the limit, so none loses precision; that a later 0 would have made the whole small again is no
 * reason to let 2^32 x 2^32 in. A BYTES element takes four bytes at least.
 */
function checkSize(name: string, datatype: Datatype, shape: readonly number[]): void {
  let bytes = datatypeBytes[datatype] || 4;
  for (const dim of shape) {
    bytes *= Math.max(dim, 1);
    if (bytes > maxTensorBytes) throw refused(`input '${name}' is larger than the limit of ${maxTensorBytes} bytes`);
  }
}

function refused(message: string): InferenceError {
  return new InferenceError("invalid_argument", message);
}
