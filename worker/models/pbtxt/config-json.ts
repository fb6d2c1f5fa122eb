/**
 * Prints a configuration in the form of the `/config` endpoint: with the original field names in
 * the proto's order and with defaults, but without absent messages. 64-bit integers are JSON
 * numbers, unlike in protobuf's own JSON.
 */
import type { ModelConfig } from "#shared/model/config.js";
import type { FieldType, Message } from "./message.js";
import { modelConfig } from "./schema.js";

export type Json = string | number | boolean | readonly Json[] | { readonly [key: string]: Json };

/**
 * @returns a value for JSON.stringify. A uint64 that no double holds is rounded towards zero, so
 *   that the result is still a uint64.
 */
export function configJson(config: ModelConfig): { readonly [key: string]: Json } {
  return printMessage(modelConfig, { ...config });
}

function printMessage(message: Message, value: Readonly<Record<string, unknown>>): { readonly [key: string]: Json } {
  const entries = [...message.fields].flatMap(([name, { label, type }]): [string, Json][] => {
    const given = value[name];
    if (given === undefined) return [];
    if (label === "repeated") return [[name, (given as readonly unknown[]).map((item) => print(type, item))]];
    if (label === "singular") return [[name, print(type, given)]];
    const printed = Object.entries(given as object).map(([key, item]): [string, Json] => [key, print(type, item)]);
    return [[name, Object.fromEntries(printed)]];
  });
  return Object.fromEntries(entries);
}

function print(type: FieldType, value: unknown): Json {
  if (typeof type === "object" && type.kind === "message") {
    return printMessage(type, value as Readonly<Record<string, unknown>>);
  }
  if (typeof value === "bigint") return roundDown(value);
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  return value as Json;
}

/** Cuts off all but 53 significant bits, because a double above 2^53 has no more. */
function roundDown(value: bigint): number {
  const extra = BigInt(value.toString(2).length - 53);
  return Number((value >> extra) << extra);
}
