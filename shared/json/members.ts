/**
 * Reads the JSON of clients with types. Refusals keep Triton's words, because the tests of Triton's
 * clients match on them. Each function except the `is` functions throws an `InferenceError`.
 */
import { InferenceError } from "#shared/errors.js";
import { JsonError } from "./error.js";
import { parseJson, type JsonObject, type JsonValue } from "./parse.js";
import { TensorData } from "./tensor-data.js";

export function unparsable(name: string, wanted: string): InferenceError {
  return new InferenceError(
    "invalid_argument",
    `Unable to parse '${name}': attempt to access JSON non-${wanted} as ${wanted}`,
  );
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof TensorData);
}

export function required(object: JsonObject, name: string): JsonValue {
  const value = object[name];
  if (value === undefined) {
    throw new InferenceError(
      "invalid_argument",
      `Unable to parse '${name}': attempt to access non-existing object member '${name}'`,
    );
  }
  return value;
}

export function asString(value: JsonValue, name: string): string {
  if (typeof value !== "string") throw unparsable(name, "string");
  return value;
}

export function asArray(value: JsonValue, name: string): JsonValue[] {
  if (!Array.isArray(value)) throw unparsable(name, "array");
  return value;
}

export function asBoolean(value: JsonValue, name: string): boolean {
  if (typeof value !== "boolean") throw unparsable(name, "boolean");
  return value;
}

/**
 * Reads a size or dimension. No valid size exceeds 2^53, so a bigint is refused like a negative or
 * fractional number.
 */
export function asSize(value: JsonValue, name: string): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw unparsable(name, "unsigned-integer");
  return value as number;
}

const maxUint64 = 2n ** 64n - 1n;

export function isUint64(value: JsonValue): value is number | bigint {
  if (typeof value === "number") return Number.isSafeInteger(value) && value >= 0;
  return typeof value === "bigint" && value >= 0n && value <= maxUint64;
}

/** Returns a member that is an object; undefined if absent. */
export function optionalObject(object: JsonObject, name: string): JsonObject | undefined {
  const value = object[name];
  if (value === undefined) return undefined;
  if (!isObject(value)) throw unparsable(name, "object");
  return value;
}

/**
 * Parses a document whose root is an object.
 * @param parse replaces the parser, for documents with tensors' data
 * @throws InferenceError `invalid_json`
 */
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

export function invalidJson(reason: string, cause?: JsonError): InferenceError {
  return new InferenceError("invalid_json", `failed to parse the request JSON buffer: ${reason}`, { cause });
}

/** @throws InferenceError for an unknown member of the body */
export function withoutOthers(given: JsonObject, names: readonly string[]): JsonObject {
  const other = Object.keys(given).find((name) => !names.includes(name));
  if (other === undefined) return given;
  throw new InferenceError("invalid_argument", `unknown member '${other}' of the body; there are: ${names.join(", ")}`);
}
