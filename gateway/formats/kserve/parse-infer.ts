/**
 * Parses the body of an infer request, as far as that needs no comparison with the model. The body
 * is JSON. With the header `Inference-Header-Content-Length`, it is JSON of that length and then
 * the bytes of tensors (Triton's binary tensor data extension).
 */
import { parseJson, type JsonObject, type JsonValue } from "#shared/json/parse.js";
import type { ServedModel } from "#shared/contract/announcement.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import type { Limits } from "../limits.js";
import {
  asArray,
  asBoolean,
  asSize,
  asString,
  isObject,
  optionalObject,
  parseRequestJson,
  required,
  unparsable,
} from "#shared/json/members.js";
import { isInputData, parseInputs, rawInput } from "./parse-inputs.js";
import { parseParameters, splitParameters } from "./parameters.js";
import { requestPrefix, type ParsedInfer, type RequestedOutput } from "./request.js";

/**
 * Tensors in binary form are views of `body`.
 * @param headerLength the `Inference-Header-Content-Length` header
 * @throws InferenceError
 */
export function parseInfer(
  body: Buffer,
  headerLength: string | undefined,
  model: ServedModel,
  limits: Limits,
): ParsedInfer {
  const jsonBytes = headerLength === undefined ? body.length : parseHeaderLength(headerLength, body.length);
  if (headerLength !== undefined && jsonBytes === 0) {
    const parameters = parseParameters(undefined, limits, model);
    parameters.binaryOutput = true;
    return { id: "", parameters, textParameters: {}, inputs: [rawInput(body, model)], outputs: [] };
  }
  if (jsonBytes > limits.jsonBytes) {
    throw new InferenceError("payload_too_large", `request JSON is larger than the limit of ${limits.jsonBytes} bytes`);
  }
  const json = body.subarray(0, jsonBytes);
  const request = parseRequestJson(json, headerLength === undefined ? parseWithData : parseHeader);
  const id = request["id"] === undefined ? "" : asString(request["id"], "id");
  const prefix = requestPrefix(id);
  const { own, text } = splitParameters(optionalObject(request, "parameters") ?? {}, model);
  return {
    id,
    parameters: parseParameters(own, limits, model),
    textParameters: text,
    inputs: parseInputs(request, body.subarray(jsonBytes), model.name, prefix, limits),
    outputs: parseOutputs(request, prefix),
  };
}

function parseWithData(bytes: Buffer): JsonValue {
  return parseJson(bytes, isInputData);
}

function parseHeaderLength(header: string, bodyLength: number): number {
  const length = /^\d{1,15}$/.test(header) ? Number(header) : Number.NaN;
  if (length <= bodyLength) return length;
  throw new InferenceError(
    "invalid_argument",
    `inference header size should be in range (0, ${bodyLength}), got: ${header}`,
  );
}

/** Longest JSON that the cache keeps, in bytes. */
const MAX_BYTES = 512;
/** Most texts in the cache. The next text empties the cache first. */
const MAX_KNOWN = 1_024;

const known = new Map<string, JsonValue>();

/**
 * Parses the JSON in front of binary tensors, and caches short JSON: the steps of a sequence differ
 * in their tensors, but seldom in their JSON. Callers share the result and must not change it.
 * @throws JsonError
 */
export function parseHeader(bytes: Buffer): JsonValue {
  if (bytes.length > MAX_BYTES) return parseJson(bytes, isInputData);
  // latin1 makes one character of each byte, so different bytes are different texts.
  const text = bytes.toString("latin1");
  let value = known.get(text);
  if (value === undefined) {
    // Copies the bytes, because later code reads data from them, and the cache must not hold the
    // memory of the whole body.
    value = parseJson(Buffer.from(bytes), isInputData);
    if (known.size === MAX_KNOWN) known.clear();
    known.set(text, value);
  }
  return value;
}

/**
 * Reads which outputs the client wants, and the encoding of each. The list is empty if the request
 * names none and thus wants all. The parameter `binary_data_output` does not affect named outputs.
 * @throws InferenceError
 */
function parseOutputs(request: JsonObject, prefix: string): RequestedOutput[] {
  const list = request["outputs"];
  if (list === undefined) return [];
  const names = new Set<string>();
  return asArray(list, "outputs").map((item) => {
    if (!isObject(item)) throw unparsable("outputs", "object");
    const name = asString(required(item, "name"), "name");
    if (names.has(name)) {
      throw new InferenceError("invalid_argument", `${prefix}output '${name}' already exists in request`);
    }
    names.add(name);
    const parameters = optionalObject(item, "parameters");
    const classes = classesIn(parameters);
    return { name, binary: isBinary(parameters), ...(classes > 0 && { classes }) };
  });
}

/** @returns how many classes the client wants in place of the tensor; 0 if it wants the tensor */
function classesIn(parameters: JsonObject | undefined): number {
  const classes = parameters?.["classification"];
  return classes === undefined ? 0 : asSize(classes, "classification");
}

function isBinary(parameters: JsonObject | undefined): boolean {
  if (parameters === undefined) return false;
  if (parameters["shared_memory_region"] !== undefined) throw fixedError("unsupported", "sharedMemory");
  const binary = parameters["binary_data"];
  return binary === undefined ? false : asBoolean(binary, "binary_data");
}
