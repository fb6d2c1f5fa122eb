/** How many sequences tenants have, which held.lua counts, read with a plain command. */
import { heldKey } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import type { Load } from "./load.js";

/** How the field of a tenant's sequences begins in `Load`. */
const FIELD = "h:";

/** The field of a tenant's sequences in `Load`; requests stand for sequences. */
export function heldField(tenant: string): string {
  return FIELD + tenant;
}

export function isHeldField(field: string): boolean {
  return field.startsWith(FIELD);
}

/** @param fields as `heldField` names tenants; one at least */
export async function readHeld(redis: RedisClient, bucket: number, fields: readonly string[]): Promise<Load[]> {
  const counts = await redis.hmget(heldKey(bucket), ...fields.map((field) => `t:${field.slice(FIELD.length)}`));
  return fields.map((field, i) => ({ field, requests: Number(counts[i]) || 0, bytes: 0 }));
}

/** @returns how many sequences the tenant has in all buckets */
export async function countHeld(redis: RedisClient, buckets: number, tenant: string): Promise<number> {
  const all = Array.from({ length: buckets }, (_, bucket) => readHeld(redis, bucket, [heldField(tenant)]));
  return (await Promise.all(all)).flat().reduce((sum, { requests }) => sum + requests, 0);
}
