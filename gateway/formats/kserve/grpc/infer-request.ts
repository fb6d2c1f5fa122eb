/**
 * Turns a ModelInferRequest into the request that every transport of the v2 protocol passes on.
 * Refusals have Triton's words for gRPC; the comparison with the model is that of HTTP.
 */
import type { ServedModel } from "#shared/contract/announcement.js";
import { isDatatype } from "#shared/model/datatype.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import type { Limits } from "../../limits.js";
import { checkIdempotencyKey } from "../../../admission/request-terms.js";
import { parseParameters, splitParameters } from "../parameters.js";
import { checkSize } from "../parse-inputs.js";
import { requestPrefix, type ParsedInfer, type RequestedOutput } from "../request.js";
import { rawContents } from "./contents.js";
import type { GrpcInfer, GrpcInput, GrpcOutput, GrpcParameter, GrpcParameters } from "./read-infer.js";

/** Asks for a message that says only that the answer is complete. */
const EMPTY_FINAL = "triton_enable_empty_final_response";
/** Baton's own: names the request, so that a repetition gets the answers of the first. */
const IDEMPOTENCY_KEY = "idempotency_key";
/** Baton's own: the index of the last answer that the client has. */
const RESUME_AFTER = "resume_after";

/** The parameters of a request that say how it is answered. */
export interface StreamTerms {
  readonly emptyFinal: boolean;
  readonly idempotencyKey: string | undefined;
  /** Undefined: all answers. */
  readonly resumeAfter: number | undefined;
}

/** @throws InferenceError */
export function streamTerms(parameters: GrpcParameters): StreamTerms {
  const emptyFinal = parameters.get(EMPTY_FINAL);
  if (emptyFinal !== undefined && emptyFinal.kind !== "bool") throw wrongKind(EMPTY_FINAL, "bool_param");
  const key = parameters.get(IDEMPOTENCY_KEY);
  if (key !== undefined && key.kind !== "string") throw wrongKind(IDEMPOTENCY_KEY, "string_param");
  if (key !== undefined) checkIdempotencyKey(key.value);
  const after = parameters.get(RESUME_AFTER);
  if (after !== undefined && after.kind !== "int64") throw wrongKind(RESUME_AFTER, "int64_param");
  if (after !== undefined && key === undefined) {
    throw refused(`${RESUME_AFTER} needs ${IDEMPOTENCY_KEY}, which names the request to resume`);
  }
  const resumeAfter = after && Number(after.value);
  if (resumeAfter !== undefined && !(resumeAfter >= 0 && Number.isSafeInteger(resumeAfter))) {
    throw refused(`${RESUME_AFTER} must be the index of an answer, from 0`);
  }
  return { emptyFinal: emptyFinal?.value ?? false, idempotencyKey: key?.value, resumeAfter };
}

/** @throws InferenceError */
export function parseGrpcInfer(given: GrpcInfer, model: ServedModel, limits: Limits): ParsedInfer {
  const { id, parameters, inputs, outputs, raw } = given;
  const { own, text } = splitParameters(plainParameters(parameters), model);
  const known = parseParameters(own, limits, model);
  // Answers are raw bytes always.
  known.binaryOutput = true;
  return {
    id,
    parameters: known,
    textParameters: text,
    inputs: readTensors(inputs, raw, model.name, requestPrefix(id), limits),
    outputs: readOutputs(outputs, requestPrefix(id)),
  };
}

/** The parameters as JSON has them, without those of `streamTerms`. */
function plainParameters(parameters: GrpcParameters): JsonObject {
  const plain: Record<string, JsonValue> = Object.create(null) as Record<string, JsonValue>;
  for (const [name, parameter] of parameters) {
    if (name === EMPTY_FINAL || name === IDEMPOTENCY_KEY || name === RESUME_AFTER) continue;
    plain[name] = plainValue(name, parameter);
  }
  return plain;
}

function plainValue(name: string, parameter: GrpcParameter): JsonValue {
  const { kind } = parameter;
  switch (name) {
    case "sequence_id":
      // Python's client writes an id above 2^63 - 1 as the negative number with the same bits.
      if (kind === "int64") return BigInt.asUintN(64, parameter.value);
      if (kind === "string") return parameter.value;
      throw wrongKind(name, "int64_param or string_param");
    case "sequence_start":
    case "sequence_end":
      if (kind === "bool") return parameter.value;
      throw wrongKind(name, "bool_param");
    case "priority":
      if (kind === "uint64" || (kind === "int64" && parameter.value >= 0n)) return parameter.value;
      throw wrongKind(name, "uint64_param");
    case "timeout":
      if (kind === "int64") return parameter.value;
      throw wrongKind(name, "int64_param");
    default:
      return customValue(name, parameter);
  }
}

function customValue(name: string, parameter: GrpcParameter): JsonValue {
  if (name.startsWith("triton_")) {
    throw refused(
      "parameter keys starting with 'triton_' are reserved for Triton usage. " +
        `Only the following keys starting with 'triton_' are allowed: ${EMPTY_FINAL}`,
    );
  }
  switch (parameter.kind) {
    case "bool":
    case "string":
      return parameter.value;
    case "double":
      if (!Number.isFinite(parameter.value)) throw refused(`parameter '${name}' must be a finite number`);
      return parameter.value;
    case "int64": {
      const number = Number(parameter.value);
      return Number.isSafeInteger(number) ? number : parameter.value;
    }
    case "uint64":
    case "none":
      throw wrongKind(name, "bool_param, int64_param, string_param or double_param");
  }
}

function wrongKind(name: string, wanted: string): InferenceError {
  return refused(`invalid value type for '${name}' parameter, expected ${wanted}.`);
}

function readTensors(
  inputs: readonly GrpcInput[],
  raw: readonly Buffer[],
  model: string,
  prefix: string,
  limits: Limits,
): Tensor[] {
  const names = new Set<string>();
  let used = 0;
  let left = limits.jsonBytes;
  const tensors = inputs.map(({ name, datatype, shape, parameters, contents }) => {
    if (names.has(name)) throw refused(`${prefix}input '${name}' already exists in request`);
    names.add(name);
    if (!isDatatype(datatype)) throw refused(`invalid datatype for input ${name}`);
    if (shape.some((dim) => dim < 0)) {
      throw refused(`${prefix}input '${name}' has a dimension below 0 in its shape [${shape.join(",")}]`);
    }
    checkSize(name, datatype, shape);
    if (parameters.has("shared_memory_region")) throw fixedError("unsupported", "sharedMemory");
    const where = `'${name}' for model '${model}'`;
    if (contents !== undefined && raw.length > 0) {
      throw refused(`contents field must not be specified when using raw_input_contents for ${where}`);
    }
    const explicit =
      contents && rawContents(contents, datatype, { input: name, model }, { most: limits.jsonBytes, left });
    left -= explicit?.length ?? 0;
    const bytes = explicit ?? raw[used++];
    if (bytes !== undefined) return { name, datatype, shape, data: bytes };
    if (shape.includes(0)) return { name, datatype, shape, data: Buffer.alloc(0) };
    throw refused(`unable to find data for input tensor ${where} in request.`);
  });
  if (raw.length > used) throw refused(`unexpected additional input data for model '${model}'`);
  return tensors;
}

function readOutputs(outputs: readonly GrpcOutput[], prefix: string): RequestedOutput[] {
  const names = new Set<string>();
  return outputs.map(({ name, parameters }) => {
    if (names.has(name)) throw refused(`${prefix}output '${name}' already exists in request`);
    names.add(name);
    if (parameters.has("shared_memory_region")) throw fixedError("unsupported", "sharedMemory");
    const classes = parameters.get("classification");
    if (classes === undefined) return { name, binary: true };
    if (classes.kind !== "int64") throw wrongKind("classification", "int64_param");
    if (classes.value <= 0n) throw refused("invalid value for 'classification' parameter, expected >= 0");
    return { name, binary: true, classes: Number(classes.value) };
  });
}

function refused(message: string): InferenceError {
  return new InferenceError("invalid_argument", message);
}
