/**
 * Reads the `parameters` of a request. Takes out the parameters that name a sequence or say how to
 * run and answer the request; the rest belongs to the model.
 */
import type { ParameterValue } from "../../admission/inference.js";
import type { CorrelationId } from "#shared/contract/sequence.js";
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { asBoolean, isUint64, unparsable } from "#shared/json/members.js";
import type { ServedModel } from "#shared/contract/announcement.js";
import { priorityLevel } from "./queue-policy.js";
import { readCorrelationId, readDeadline, readStepNumber, type DeadlineLimits } from "../../admission/request-terms.js";

export interface RequestParameters {
  /** The uint64 0 and the empty string both mean that the request belongs to no sequence. */
  sequenceId: CorrelationId;
  sequenceStart: boolean;
  sequenceEnd: boolean;
  /** Number of the step in its sequence; undefined if the client gives no number. */
  sequenceStep: number | undefined;
  /** Whether outputs that the request does not name come as bytes rather than JSON. */
  binaryOutput: boolean;
  deadlineMs: number;
  /** The request's own timeout in ms, if any. */
  timeoutMs: number | undefined;
  /** The request's priority level, if any. */
  level: number | undefined;
  /** Parameters for the model. */
  custom: Record<string, ParameterValue>;
}

/** @throws InferenceError */
export function parseParameters(
  given: JsonObject | undefined,
  limits: DeadlineLimits,
  model: ServedModel | undefined,
): RequestParameters {
  const parameters: RequestParameters = {
    sequenceId: { kind: "uint64", value: 0n },
    sequenceStart: false,
    sequenceEnd: false,
    sequenceStep: undefined,
    binaryOutput: false,
    deadlineMs: limits.defaultDeadlineMs,
    timeoutMs: undefined,
    level: undefined,
    custom: Object.create(null) as Record<string, ParameterValue>,
  };
  for (const name in given) readParameter(name, given[name] as JsonValue, parameters, limits, model);
  return parameters;
}

/**
 * Reads the parameters of `generate`. All belong to the model, because no name has a meaning here.
 * @throws InferenceError
 */
export function customParameters(given: JsonObject, limits: DeadlineLimits): RequestParameters {
  const parameters = parseParameters(undefined, limits, undefined);
  for (const name in given) parameters.custom[name] = customValue(name, given[name] as JsonValue);
  return parameters;
}

/** The parameters of `infer` that mean the same for all models. */
const common: ReadonlySet<string> = new Set([
  "sequence_id",
  "sequence_start",
  "sequence_end",
  "sequence_step",
  "binary_data_output",
  "timeout",
  "priority",
]);

/**
 * Takes the parameters that `text-generation.ts` reads apart from those that `parseParameters`
 * reads. A generator reads all itself but one.
 */
export function splitParameters(
  given: JsonObject,
  model: ServedModel,
): { readonly own: JsonObject; readonly text: JsonObject } {
  if (model.generator !== undefined) {
    const { binary_data_output: binaryOutput } = given;
    return { own: binaryOutput === undefined ? {} : { binary_data_output: binaryOutput }, text: given };
  }
  if (model.samples === undefined) return { own: given, text: {} };
  const entries = Object.entries(given);
  return {
    own: Object.fromEntries(entries.filter(([name]) => common.has(name))),
    text: Object.fromEntries(entries.filter(([name]) => !common.has(name))),
  };
}

function readParameter(
  name: string,
  value: JsonValue,
  into: RequestParameters,
  limits: DeadlineLimits,
  model: ServedModel | undefined,
): void {
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
      if (BigInt(value as number | bigint) !== 0n) into.timeoutMs = into.deadlineMs;
      break;
    case "priority":
      if (!isUint64(value)) throw unparsable("priority", "unsigned-integer");
      if (model !== undefined) into.level = priorityLevel(BigInt(value), model);
      break;
    default:
      into.custom[name] = customValue(name, value);
  }
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
