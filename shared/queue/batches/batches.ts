/** Reads batches with plain commands. The code that writes a batch defines its text. */
import type { RedisClient } from "../../redis/connect.js";
import { batchKeys } from "../keys.js";

/** @returns the text of the batch; undefined if there is none */
export async function readBatch(redis: RedisClient, tenant: string, id: string): Promise<string | undefined> {
  return (await redis.get(batchKeys.batch(tenant, id))) ?? undefined;
}

/**
 * The ids of a tenant's batches, newest first.
 * @param from how many to skip
 */
export function listBatches(redis: RedisClient, tenant: string, from: number, count: number): Promise<string[]> {
  return redis.zrevrange(batchKeys.all(tenant), from, from + count - 1);
}

/** How many of the tenant's batches are newer; undefined if the tenant has no such batch. */
export async function placeOfBatch(redis: RedisClient, tenant: string, id: string): Promise<number | undefined> {
  return (await redis.zrevrank(batchKeys.all(tenant), id)) ?? undefined;
}

/** How many batches of the tenant have not ended. */
export function countOpenBatches(redis: RedisClient, tenant: string): Promise<number> {
  return redis.scard(batchKeys.openOf(tenant));
}

export interface OpenBatch {
  readonly tenant: string;
  readonly id: string;
}

/**
 * How many batches of all tenants still have work to do, by status. A batch that a process of the
 * version before has written last has the status `1`.
 */
export async function countByStatus(redis: RedisClient): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  for (const status of await redis.hvals(batchKeys.openOfAll)) counts.set(status, (counts.get(status) ?? 0) + 1);
  return counts;
}

/** All batches that still have work to do. */
export async function openBatches(redis: RedisClient): Promise<OpenBatch[]> {
  return (await redis.hkeys(batchKeys.openOfAll)).map((member) => {
    const [tenant = "", id = ""] = member.split(" ");
    return { tenant, id };
  });
}

/** Notes which lines of a batch repeat the id of an earlier line: a bit for each line. */
export async function writeDuplicates(redis: RedisClient, one: OpenBatch, bits: Buffer, ttlMs: number): Promise<void> {
  await redis.set(batchKeys.duplicates(one.tenant, one.id), bits, "PX", ttlMs);
}

export async function readDuplicates(redis: RedisClient, { tenant, id }: OpenBatch): Promise<Buffer | undefined> {
  return (await redis.getBuffer(batchKeys.duplicates(tenant, id))) ?? undefined;
}

export async function forgetDuplicates(redis: RedisClient, { tenant, id }: OpenBatch): Promise<void> {
  await redis.unlink(batchKeys.duplicates(tenant, id));
}
