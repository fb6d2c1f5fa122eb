/** The body of an infer request, as far as it can be read without comparing it with the model; spec/http-v2.md sections 5 and 6. */
import { JsonError } from "#shared/json/error.js";
import { parseJson, type JsonObject, type JsonValue } from "#shared/json/parse.js";
import type { ServedModel } from "#shared/contract/announcement.js";
import { InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import type { Limits } from "./limits.js";
import { parseHeader } from "./known-headers.js";
import { asString, isObject, optionalObject } from "./members.js";
import { isInputData, parseInputs } from "./parse-inputs.js";
import { parseOutputs, type RequestedOutput } from "./parse-outputs.js";
import { parseParameters, type RequestParameters } from "./parse-parameters.js";
import { rawInput } from "./raw-request.js";
import { requestPrefix } from "./request-prefix.js";

export interface ParsedInfer {
  /** Empty where the request has none. */
  readonly id: string;
  readonly parameters: RequestParameters;
  /** What a generator reads for itself, where lists and objects have a meaning too; empty for other models. */
  readonly textParameters: JsonObject;
  readonly inputs: readonly Tensor[];
  /** Empty: all. */
  readonly outputs: readonly RequestedOutput[];
}

/**
 * Tensors are views of `body` where they came as bytes.
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
    const parameters = parseParameters(undefined, limits);
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
  const given = optionalObject(request, "parameters");
  const textParameters = model.generator === undefined ? {} : (given ?? {});
  return {
    id,
    parameters: parseParameters(model.generator === undefined ? given : withoutSampling(textParameters), limits),
    textParameters,
    inputs: parseInputs(request, body.subarray(jsonBytes), model.name, prefix, limits),
    outputs: parseOutputs(request, prefix),
  };
}

function parseWithData(bytes: Buffer): JsonValue {
  return parseJson(bytes, isInputData);
}

/** What means the same for every model. */
function withoutSampling({ binary_data_output: binaryOutput }: JsonObject): JsonObject {
  return binaryOutput === undefined ? {} : { binary_data_output: binaryOutput };
}

function parseHeaderLength(header: string, bodyLength: number): number {
  const length = /^\d{1,15}$/.test(header) ? Number(header) : Number.NaN;
  if (length <= bodyLength) return length;
  throw new InferenceError(
    "invalid_argument",
    `inference header size should be in range (0, ${bodyLength}), got: ${header}`,
  );
}

/** @throws InferenceError `invalid_json` */
export function parseRequestJson(bytes: Buffer, parse: (bytes: Buffer) => JsonValue = parseJson): JsonObject {
  try {
    const request = parse(bytes);
    if (isObject(request)) return request;
  } catch (error) {
    if (error instanceof JsonError) throw invalidJson(error.message, error);
    throw error;
  }
  throw invalidJson("The document root must be an object at 0");
}

function invalidJson(reason: string, cause?: JsonError): InferenceError {
  return new InferenceError("invalid_json", `failed to parse the request JSON buffer: ${reason}`, { cause });
}
