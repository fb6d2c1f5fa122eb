/** Members of a client's JSON as plain values. Clients write null for what they leave to the server, so null is absent. */
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import { ParameterFault, shown } from "./fault.js";

export function given(body: JsonObject, name: string): JsonValue | undefined {
  return body[name] ?? undefined;
}

export function readBoolean(body: JsonObject, name: string): boolean | undefined {
  const value = given(body, name);
  if (value === undefined || typeof value === "boolean") return value;
  throw new ParameterFault(name, `${name} must be true or false, got ${shown(value)}`);
}

export function readString(body: JsonObject, name: string): string | undefined {
  const value = given(body, name);
  if (value === undefined || typeof value === "string") return value;
  throw new ParameterFault(name, `${name} must be a string, got ${shown(value)}`);
}

export interface Range {
  readonly min: number;
  readonly max: number;
  /** `min` itself is not allowed. */
  readonly above?: true;
}

export function readNumber(body: JsonObject, name: string, range: Range): number | undefined {
  const value = given(body, name);
  if (value === undefined) return undefined;
  if (typeof value === "number" && isWithin(value, range)) return value;
  const { min, max, above } = range;
  const limits = above === true ? `above ${min} and at most ${max}` : `from ${min} to ${max}`;
  throw new ParameterFault(name, `${name} must be a number ${limits}, got ${shown(value)}`);
}

export function readInteger(body: JsonObject, name: string, min: number, max: number): number | undefined {
  const value = given(body, name);
  if (value === undefined) return undefined;
  if (isIntegerIn(value, min, max)) return value;
  throw new ParameterFault(name, `${name} must be a whole number from ${min} to ${max}, got ${shown(value)}`);
}

export function isIntegerIn(value: JsonValue, min: number, max: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
}

/** NaN, which the parser lets through, is within nothing. */
export function isWithin(value: number, { min, max, above }: Range): boolean {
  return value <= max && (above === true ? value > min : value >= min);
}
