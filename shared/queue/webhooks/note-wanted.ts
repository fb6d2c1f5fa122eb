/** The typed wrapper of note-wanted.lua: tells a bucket's scripts which events somebody wants. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript } from "../../redis/script.js";
import type { EventType } from "../events.js";
import { wantedKey } from "../keys.js";

export interface Wanted {
  readonly tenant: string;
  /** Of the tenant's webhooks, as `writeWebhook` answers it. */
  readonly revision: number;
  readonly events: readonly EventType[];
}

const script = defineScript(new URL("./note-wanted.lua", import.meta.url), () => undefined);

/** @param buckets that are told */
export async function noteWanted(redis: RedisClient, buckets: readonly number[], wanted: Wanted): Promise<void> {
  const args = [wanted.tenant, wanted.revision, wanted.events.join(" ")];
  await Promise.all(buckets.map((bucket) => script(redis, [wantedKey(bucket)], args)));
}

/** The revisions of which a bucket was told, by tenant. */
export async function readTold(redis: RedisClient, bucket: number): Promise<ReadonlyMap<string, number>> {
  const told = await redis.hgetall(wantedKey(bucket));
  return new Map(Object.entries(told).map(([tenant, text]) => [tenant, Number.parseInt(text, 10)]));
}
