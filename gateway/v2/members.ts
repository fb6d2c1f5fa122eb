/** Typed reading of client JSON. A refusal keeps Triton's words, since its clients' tests match on them. */
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import { TensorData } from "#shared/json/tensor-data.js";
import { InferenceError } from "#shared/errors.js";

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

/** Sizes and dimensions: beyond 2^53 none can be meant, so bigint is refused with what is negative or fractional. */
export function asSize(value: JsonValue, name: string): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw unparsable(name, "unsigned-integer");
  return value as number;
}

const maxUint64 = 2n ** 64n - 1n;

export function isUint64(value: JsonValue): value is number | bigint {
  if (typeof value === "number") return Number.isSafeInteger(value) && value >= 0;
  return typeof value === "bigint" && value >= 0n && value <= maxUint64;
}

/** Undefined where the member is absent. */
export function optionalObject(object: JsonObject, name: string): JsonObject | undefined {
  const value = object[name];
  if (value === undefined) return undefined;
  if (!isObject(value)) throw unparsable(name, "object");
  return value;
}
