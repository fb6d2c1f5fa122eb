/**
 * Reads the `parameters` of a request. Those that name its sequence or say how it is run and
 * answered are taken out; the rest belongs to the model.
 */
import type { ParameterValue } from "../admission/inference.js";
import type { CorrelationId } from "#shared/contract/sequence.js";
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { asBoolean, isUint64, unparsable } from "#shared/json/members.js";
import { readCorrelationId, readDeadline, readStepNumber, type DeadlineLimits } from "../admission/request-terms.js";

export interface RequestParameters {
  /** The uint64 0 and the empty string both say that the request is in no sequence. */
  sequenceId: CorrelationId;
  sequenceStart: boolean;
  sequenceEnd: boolean;
  /** Which step of its sequence the request is; undefined where the client does not say. */
  sequenceStep: number | undefined;
  /** Whether outputs that the request does not name come as bytes rather than JSON. */
  binaryOutput: boolean;
  deadlineMs: number;
  /** Parameters for the model. */
  custom: Record<string, ParameterValue>;
}

/** @throws InferenceError */
export function parseParameters(given: JsonObject | undefined, limits: DeadlineLimits): RequestParameters {
  const parameters: RequestParameters = {
    sequenceId: { kind: "uint64", value: 0n },
    sequenceStart: false,
    sequenceEnd: false,
    sequenceStep: undefined,
    binaryOutput: false,
    deadlineMs: limits.defaultDeadlineMs,
    custom: Object.create(null) as Record<string, ParameterValue>,
  };
  for (const name in given) readParameter(name, given[name] as JsonValue, parameters, limits);
  return parameters;
}

/**
 * Reads the parameters of `generate`, where no name has a meaning here: all belong to the model.
 * @throws InferenceError
 */
export function customParameters(given: JsonObject, limits: DeadlineLimits): RequestParameters {
  const parameters = parseParameters(undefined, limits);
  for (const name in given) parameters.custom[name] = customValue(name, given[name] as JsonValue);
  return parameters;
}

function readParameter(name: string, value: JsonValue, into: RequestParameters, limits: DeadlineLimits): void {
  switch (name) {
    case "sequence_id":
      into.sequenceId = readCorrelationId(value);
      break;
    case "sequence_start":
      into.sequenceStart = asBoolean(value, name);
      break;
    case "sequence_end":
      into.sequenceEnd = asBoolean(value, name);
      break;
    case "sequence_step":
      into.sequenceStep = readStepNumber(value);
      break;
    case "binary_data_output":
      into.binaryOutput = asBoolean(value, name);
      break;
    case "timeout":
      into.deadlineMs = readDeadline(value, limits);
      break;
    case "priority":
      checkPriority(value);
      break;
    default:
      into.custom[name] = customValue(name, value);
  }
}

/**
 * Takes only 0, which asks for the default of the model: no model has priority levels yet.
 * @throws InferenceError
 */
function checkPriority(value: JsonValue): void {
  if (!isUint64(value)) throw unparsable("priority", "unsigned-integer");
  if (BigInt(value) === 0n) return;
  throw new InferenceError(
    "invalid_argument",
    `priority ${value} is not supported: models have no priority levels, and requests are taken in the order in which they come`,
  );
}

function customValue(name: string, value: JsonValue): ParameterValue {
  if (name.startsWith("triton_")) {
    throw fixedError("invalid_argument", "reservedParameter");
  }
  if (typeof value === "object") {
    throw new InferenceError(
      "invalid_argument",
      `parameter '${name}' has invalid type. It should be either 'int', 'bool', 'string' or 'double'.`,
    );
  }
  return value;
}
