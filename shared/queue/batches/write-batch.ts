/**
 * The typed wrapper of write-batch.lua: makes or changes a batch, unless another process was
 * faster.
 */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { batchKeys } from "../keys.js";

export interface BatchChange {
  readonly tenant: string;
  readonly id: string;
  /** The text as the caller has read it; undefined for a new batch. */
  readonly from: string | undefined;
  readonly to: string;
  /** Whether the batch still has work to do. */
  readonly isOpen: boolean;
}

export interface BatchLimits {
  /** How long a batch stays after its end, in ms. */
  readonly keptMs: number;
  /** Most batches of a tenant that still have work to do. */
  readonly open: number;
  /** Most batches of a tenant. */
  readonly known: number;
}

const script = defineScript(
  new URL("./write-batch.lua", import.meta.url),
  (reply) => word(reply, ["written", "conflict", "full"]),
  {
    keys: ["batch", "openOfAll", "all", "open"],
    args: ["tenant", "id", "from", "to", "isOpen", "ttl", "mostOpen", "most"],
    durable: true,
  },
);

export function writeBatch(
  redis: RedisClient,
  { tenant, id, from, to, isOpen }: BatchChange,
  { keptMs, open, known }: BatchLimits,
): Promise<"written" | "conflict" | "full"> {
  const keys = {
    batch: batchKeys.batch(tenant, id),
    openOfAll: batchKeys.openOfAll,
    all: batchKeys.all(tenant),
    open: batchKeys.openOf(tenant),
  };
  return script(redis, keys, {
    tenant,
    id,
    from: from ?? "",
    to,
    isOpen: isOpen ? "1" : "0",
    ttl: keptMs,
    mostOpen: open,
    most: known,
  });
}
