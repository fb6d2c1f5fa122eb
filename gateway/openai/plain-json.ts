/** The client's JSON as `JSON.stringify` takes it: whole numbers that only a bigint holds become the nearest double. */
import type { JsonValue } from "#shared/json/parse.js";

export function plainJson(value: JsonValue): JsonValue {
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(plainJson);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plainJson(member)]));
}
