/** Records of keys and tenants, read with plain commands. Their writers define their JSON. */
import { timeAt } from "../../redis/clock.js";
import type { RedisClient } from "../../redis/connect.js";
import { ownerKeys } from "../keys.js";

/** @returns each record as written, in the order of `ids`; undefined if there is none */
export async function readKeys(redis: RedisClient, ids: readonly string[]): Promise<(string | undefined)[]> {
  if (ids.length === 0) return [];
  return (await redis.mget(ids.map(ownerKeys.key))).map((record) => record ?? undefined);
}

/** A list of records, the newest first. */
export type OwnerIndex = { readonly of: "tenants" } | { readonly of: "keys"; readonly tenant: string | undefined };

/** The names of a part of a list. A revoked key's id stays after its record has gone. */
export function readIndex(redis: RedisClient, index: OwnerIndex, from: number, count: number): Promise<string[]> {
  return redis.zrange(indexKey(index), String(from), String(from + count - 1), "REV");
}

/** @returns undefined if the list does not have the name */
export async function placeIn(redis: RedisClient, index: OwnerIndex, name: string): Promise<number | undefined> {
  return (await redis.zrevrank(indexKey(index), name)) ?? undefined;
}

/** @param index of keys with an undefined tenant: of all tenants */
function indexKey(index: OwnerIndex): string {
  if (index.of === "tenants") return ownerKeys.tenants;
  return index.tenant === undefined ? ownerKeys.ids : ownerKeys.idsOf(index.tenant);
}

/** @returns each record as written, in the order of `tenants`; undefined if there is none */
export async function readTenants(redis: RedisClient, tenants: readonly string[]): Promise<(string | undefined)[]> {
  if (tenants.length === 0) return [];
  return (await redis.mget(tenants.map(ownerKeys.tenant))).map((record) => record ?? undefined);
}

export interface Changes {
  /** Names of the changed records: `key:` and the id, or `tenant:` and the tenant. */
  readonly names: readonly string[];
  /** The place from which to read on. */
  readonly place: string;
  /** Whether changes may be missing: then nothing that was read before is sure. */
  readonly isGap: boolean;
  /** Whether there may be more changes. */
  readonly isFull: boolean;
  /** Redis ms. */
  readonly now: number;
}

/** The place before all changes. */
const START = "0-0";
/** Changes of one read. */
const AT_ONCE = 1_000;

/**
 * Reads on behind a change. Reads that change once more: if Redis does not have it any more, the
 * stream was cut short, or Redis has lost it with others, or is another server.
 * @param place of the read before; undefined for the first
 */
export async function readChanges(redis: RedisClient, place: string | undefined): Promise<Changes> {
  const from = place === undefined || place === START ? "-" : place;
  const call = place === undefined ? redis.xrevrange(ownerKeys.changes, "+", "-", "COUNT", 1) : undefined;
  const [entries, now] = await Promise.all([
    call ?? redis.xrange(ownerKeys.changes, from, "+", "COUNT", AT_ONCE),
    timeAt(redis, ownerKeys.changes),
  ]);
  const last = entries.at(-1)?.[0] ?? START;
  if (place === undefined) return { names: [], place: last, isGap: true, isFull: false, now };
  const isGap = place !== START && entries[0]?.[0] !== place;
  if (isGap) return { names: [], place: await lastChange(redis), isGap, isFull: false, now };
  const fresh = place === START ? entries : entries.slice(1);
  return {
    names: fresh.map(([, [, name = ""]]) => name),
    place: last,
    isGap,
    isFull: entries.length === AT_ONCE,
    now,
  };
}

async function lastChange(redis: RedisClient): Promise<string> {
  const [newest] = await redis.xrevrange(ownerKeys.changes, "+", "-", "COUNT", 1);
  return newest?.[0] ?? START;
}
