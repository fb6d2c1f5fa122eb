/** The typed wrapper of write-owner.lua: makes, changes or removes a record of a key or tenant. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { ownerKeys } from "../keys.js";

const said = ["written", "conflict", "last"] as const;
export type Written = (typeof said)[number];

const script = defineScript(new URL("./write-owner.lua", import.meta.url), (reply) => word(reply, said), {
  keys: ["record", "changes", "operators", { indexes: [] }],
  args: ["id", "change", "from", "to", "operator", "spares", "ttl", "most"],
  durable: true,
});

/** Most changes to keep. A gateway that missed more forgets all that it knows. */
const MOST_CHANGES = 10_000;

export interface OwnerChange {
  /** The record that the caller has read; undefined to make it. */
  readonly from: string | undefined;
  /** The new record; undefined to remove it. */
  readonly to: string | undefined;
  /** After so many ms the record goes; absent: never. */
  readonly ttlMs?: number;
}

/** A key's record, and what scripts have to know of it. */
export interface KeyToWrite {
  readonly id: string;
  readonly tenant: string;
  /**
   * Redis ms at which the key ceases to be an operator's: Infinity if it never expires. Undefined
   * for a key that is no operator's, or is revoked.
   */
  readonly operatorUntil: number | undefined;
}

/**
 * @param spares `last` to leave at least one key of an operator
 * @returns `conflict` if another call was faster; `last` if no other key is an operator's
 */
export function writeKey(
  redis: RedisClient,
  { id, tenant, operatorUntil }: KeyToWrite,
  change: OwnerChange,
  spares: "last" | "none" = "none",
): Promise<Written> {
  const indexes = [ownerKeys.ids, ownerKeys.idsOf(tenant)];
  const operator = operatorUntil === undefined ? "no" : Math.min(operatorUntil, Number.MAX_SAFE_INTEGER);
  return write(redis, { record: ownerKeys.key(id), indexes, id, change: `key:${id}`, operator, spares }, change);
}

/** @returns false if another call was faster */
export async function writeTenant(redis: RedisClient, tenant: string, change: OwnerChange): Promise<boolean> {
  const [record, indexes] = [ownerKeys.tenant(tenant), [ownerKeys.tenants]];
  const terms = { record, indexes, id: tenant, change: `tenant:${tenant}`, operator: "", spares: "none" };
  return (await write(redis, terms, change)) === "written";
}

interface Terms {
  readonly record: string;
  readonly indexes: readonly string[];
  readonly id: string;
  readonly change: string;
  readonly operator: string | number;
  readonly spares: string;
}

function write(
  redis: RedisClient,
  { record, indexes, ...terms }: Terms,
  { from = "", to = "", ttlMs }: OwnerChange,
): Promise<Written> {
  const keys = { record, changes: ownerKeys.changes, operators: ownerKeys.operators, indexes };
  return script(redis, keys, { ...terms, from, to, ttl: ttlMs ?? "", most: MOST_CHANGES });
}
