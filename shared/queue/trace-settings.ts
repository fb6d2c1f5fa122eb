/**
 * The settings of traces that operators change while the fleet runs: a hash with a field for each
 * changed value, for the whole deployment or for one model. Gateways read the hash with the fleet
 * (admission/read-fleet.lua).
 */
import type { RedisClient } from "../redis/connect.js";
import { registryKeys } from "./keys.js";

/** A field's name is `<model>:<setting>`, and `:<setting>` for the whole deployment. */
export type TraceFields = ReadonlyMap<string, string>;

/** Redis holds no more fields, because every gateway reads all of them each second. */
const MOST_FIELDS = 400;

/** @param model undefined for the whole deployment */
export function traceField(model: string | undefined, setting: "level" | "rate"): string {
  return `${model ?? ""}:${setting}`;
}

/** Decodes the reply of HGETALL. */
export function fieldsOf(pairs: readonly string[]): TraceFields {
  return new Map(Array.from({ length: pairs.length / 2 }, (_, i) => [pairs[2 * i] ?? "", pairs[2 * i + 1] ?? ""]));
}

/**
 * Sets the fields that have a value, and removes the others.
 * @returns all fields after the change; undefined if there is no room for further fields
 */
export async function changeTraceFields(
  redis: RedisClient,
  changes: ReadonlyMap<string, string | undefined>,
): Promise<TraceFields | undefined> {
  const key = registryKeys.tracing;
  const given = [...changes].flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  const reset = [...changes.keys()].filter((name) => changes.get(name) === undefined);
  // The deployment's own values always have room: an operator must be able to switch traces off.
  const ofModels = given.map(([name]) => name).filter((name) => !name.startsWith(":"));
  if (ofModels.length > 0) {
    const [count, known] = await Promise.all([redis.hlen(key), redis.hmget(key, ...ofModels)]);
    if (count + known.filter((value) => value === null).length > MOST_FIELDS) return undefined;
  }
  if (reset.length > 0) await redis.hdel(key, ...reset);
  if (given.length > 0) await redis.hset(key, ...given.flat());
  return new Map(Object.entries(await redis.hgetall(key)));
}
