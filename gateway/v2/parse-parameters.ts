/** The request's own `parameters`: what schedules and names the sequence is taken out, the rest is the model's. */
import type { ParameterValue } from "../inference.js";
import type { CorrelationId } from "#shared/contract/sequence.js";
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import { InferenceError } from "#shared/errors.js";
import type { Limits } from "./limits.js";
import { asBoolean, isUint64, unparsable } from "./members.js";

export interface RequestParameters {
  /** uint64 0 and the empty string both mean: not in a sequence. */
  sequenceId: CorrelationId;
  sequenceStart: boolean;
  sequenceEnd: boolean;
  /** Encoding of outputs that the request does not name. */
  binaryOutput: boolean;
  deadlineMs: number;
  /** What is left for the model. */
  custom: Record<string, ParameterValue>;
}

const maxIdBytes = 128;

export function parseParameters(given: JsonObject | undefined, limits: Limits): RequestParameters {
  const parameters: RequestParameters = {
    sequenceId: { kind: "uint64", value: 0n },
    sequenceStart: false,
    sequenceEnd: false,
    binaryOutput: false,
    deadlineMs: limits.defaultDeadlineMs,
    custom: Object.create(null) as Record<string, ParameterValue>,
  };
  for (const name in given) readParameter(name, given[name] as JsonValue, parameters, limits);
  return parameters;
}

/** On `generate` none of the names has a meaning here: all are the model's. */
export function customParameters(given: JsonObject, limits: Limits): RequestParameters {
  const parameters = parseParameters(undefined, limits);
  for (const name in given) parameters.custom[name] = customValue(name, given[name] as JsonValue);
  return parameters;
}

function readParameter(name: string, value: JsonValue, into: RequestParameters, limits: Limits): void {
  switch (name) {
    case "sequence_id":
      into.sequenceId = correlationId(value);
      break;
    case "sequence_start":
      into.sequenceStart = asBoolean(value, name);
      break;
    case "sequence_end":
      into.sequenceEnd = asBoolean(value, name);
      break;
    case "binary_data_output":
      into.binaryOutput = asBoolean(value, name);
      break;
    case "timeout":
      into.deadlineMs = deadline(value, limits);
      break;
    case "priority":
      checkPriority(value);
      break;
    default:
      into.custom[name] = customValue(name, value);
  }
}

/** 0 asks for the model's default, which is all that there is: no model has priority levels yet. */
function checkPriority(value: JsonValue): void {
  if (!isUint64(value)) throw unparsable("priority", "unsigned-integer");
  if (BigInt(value) === 0n) return;
  throw new InferenceError(
    "invalid_argument",
    `priority ${value} is not supported: models have no priority levels, and requests are taken in the order in which they come`,
  );
}

export function correlationId(value: JsonValue): CorrelationId {
  if (isUint64(value)) return { kind: "uint64", value: BigInt(value) };
  if (typeof value !== "string") throw unparsable("sequence_id", "string");
  if (Buffer.byteLength(value) > maxIdBytes) {
    throw new InferenceError("unsupported", `string correlation ID cannot be longer than ${maxIdBytes} characters`);
  }
  return { kind: "string", value };
}

/** Microseconds; 0 asks for the default. Rounded up, so that no given time becomes none. */
export function deadline(value: JsonValue, limits: Limits): number {
  if (!isUint64(value)) throw unparsable("timeout", "unsigned-integer");
  const ms = Math.ceil(Number(value) / 1000);
  if (ms > limits.maxDeadlineMs) {
    throw new InferenceError(
      "invalid_argument",
      `timeout of ${value} microseconds is longer than the limit of ${limits.maxDeadlineMs * 1000}`,
    );
  }
  return ms === 0 ? limits.defaultDeadlineMs : ms;
}

function customValue(name: string, value: JsonValue): ParameterValue {
  if (name.startsWith("triton_")) {
    throw new InferenceError(
      "invalid_argument",
      "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
    );
  }
  if (typeof value === "object") {
    throw new InferenceError(
      "invalid_argument",
      `parameter '${name}' has invalid type. It should be either 'int', 'bool', 'string' or 'double'.`,
    );
  }
  return value;
}
