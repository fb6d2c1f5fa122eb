/**
 * Reads the parameters of a generation request from the client's JSON as plain values, or refuses
 * them by name. Clients write null for values that the server should choose, so null counts as
 * absent.
 */
import { InferenceError, shortened, type ErrorCode } from "#shared/errors.js";
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import { printJson } from "#shared/json/print.js";

/**
 * A refusal because of one parameter of the request. OpenAI's clients read the parameter's name.
 */
export class ParameterError extends InferenceError {
  /** The parameter's name as the client wrote it, such as `messages[0].role`. */
  readonly parameter: string;

  constructor(parameter: string, message: string, code: ErrorCode = "invalid_argument") {
    super(code, message);
    this.parameter = parameter;
  }
}

/** Longest part of a client's value that an error message repeats, in characters. */
const maxPreviewLength = 64;

/** @returns the value that a client gave, shortened for an error message */
export function preview(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  return shortened(printJson(value), maxPreviewLength);
}

/** @returns a member of the client's JSON; undefined if absent or null */
export function readValue(body: JsonObject, name: string): JsonValue | undefined {
  return body[name] ?? undefined;
}

/** @throws ParameterError if the member is present and no boolean */
export function readBoolean(body: JsonObject, name: string): boolean | undefined {
  const value = readValue(body, name);
  if (value === undefined || typeof value === "boolean") return value;
  throw new ParameterError(name, `${name} must be true or false, got ${preview(value)}`);
}

/** @throws ParameterError if the member is present and no string */
export function readString(body: JsonObject, name: string): string | undefined {
  const value = readValue(body, name);
  if (value === undefined || typeof value === "string") return value;
  throw new ParameterError(name, `${name} must be a string, got ${preview(value)}`);
}

/** The numbers from `min` to `max`. */
export interface Range {
  readonly min: number;
  readonly max: number;
  /** Excludes `min` itself. */
  readonly above?: true;
}

/** @throws ParameterError if the member is present and no number of the range */
export function readNumber(body: JsonObject, name: string, range: Range): number | undefined {
  const value = readValue(body, name);
  if (value === undefined) return undefined;
  if (typeof value === "number" && isWithin(value, range)) return value;
  const { min, max, above } = range;
  const limits = above === true ? `above ${min} and at most ${max}` : `from ${min} to ${max}`;
  throw new ParameterError(name, `${name} must be a number ${limits}, got ${preview(value)}`);
}

/** @throws ParameterError if the member is present and no whole number from `min` to `max` */
export function readInteger(body: JsonObject, name: string, min: number, max: number): number | undefined {
  const value = readValue(body, name);
  if (value === undefined) return undefined;
  if (isIntegerIn(value, min, max)) return value;
  throw new ParameterError(name, `${name} must be a whole number from ${min} to ${max}, got ${preview(value)}`);
}

export function isIntegerIn(value: JsonValue, min: number, max: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
}

/** NaN, which the JSON parser accepts, is within no range. */
export function isWithin(value: number, { min, max, above }: Range): boolean {
  return value <= max && (above === true ? value > min : value >= min);
}

/**
 * The treatment of each parameter in one protocol. Baton refuses by name a parameter that would
 * change the answer and has no effect here, because after a 200 a client may believe that the
 * parameter took effect. Clients also send parameters that ask for nothing, for example with the
 * default value; Baton accepts those.
 */
export interface ParameterRules {
  /** Parameters that the protocol's parser reads. */
  readonly obeyed: ReadonlySet<string>;
  /** Parameters that never change an answer, with any value. */
  readonly harmless: ReadonlySet<string>;
  /** Parameters to refuse, each with the values (as JSON) that ask for nothing. */
  readonly unsupported: ReadonlyMap<string, readonly string[]>;
}

/** Longest part of an unknown parameter's name that an error message repeats, in characters. */
const maxNameLength = 64;

/**
 * @param path prefix of the names in error messages, such as `stream_options.`
 * @throws ParameterError for the first parameter that would need an effect and has none
 */
export function refuseUnsupported(
  members: JsonObject,
  { obeyed, harmless, unsupported }: ParameterRules,
  path = "",
): void {
  for (const name of Object.keys(members)) {
    const value = readValue(members, name);
    if (value === undefined || obeyed.has(name) || harmless.has(name)) continue;
    const fullName = path + shortened(name, maxNameLength, "");
    const neutral = unsupported.get(name);
    if (neutral === undefined)
      throw new ParameterError(fullName, `Unrecognized request argument supplied: ${fullName}`);
    if (neutral.includes(printJson(value))) continue;
    const advice = ["leave it out", ...neutral.map((json) => `give ${json}`)].join(" or ");
    throw new ParameterError(fullName, `${fullName} is not supported: ${advice}`);
  }
}
