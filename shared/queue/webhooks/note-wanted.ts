/**
 * The typed wrapper of note-wanted.lua: notes in a bucket which events a tenant's webhooks want.
 */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript } from "../../redis/script.js";
import type { EventType } from "../pieces/events.js";
import { wantedKey } from "../keys.js";

export interface Wanted {
  readonly tenant: string;
  /** The revision of the tenant's webhooks, from `writeWebhook`. */
  readonly revision: number;
  readonly events: readonly EventType[];
}

const script = defineScript(new URL("./note-wanted.lua", import.meta.url), () => undefined, {
  keys: ["wanted"],
  args: ["tenant", "revision", "events"],
});

/** @param buckets the buckets to update */
export async function noteWanted(redis: RedisClient, buckets: readonly number[], wanted: Wanted): Promise<void> {
  const args = { ...wanted, events: wanted.events.join(" ") };
  await Promise.all(buckets.map((bucket) => script(redis, { wanted: wantedKey(bucket) }, args)));
}

/** The revision that a bucket has of each tenant's webhooks. */
export async function readTold(redis: RedisClient, bucket: number): Promise<ReadonlyMap<string, number>> {
  const told = await redis.hgetall(wantedKey(bucket));
  return new Map(Object.entries(told).map(([tenant, text]) => [tenant, Number.parseInt(text, 10)]));
}
