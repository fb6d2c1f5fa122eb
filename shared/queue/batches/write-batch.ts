/**
 * The typed wrapper of write-batch.lua: makes or changes a batch, unless another process was
 * faster.
 */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text, word } from "../../redis/script.js";
import { batchKeys, loadKey } from "../keys.js";
import { ratesOfCall, standingsOf, type Rate, type RateStanding } from "../pieces/rates.js";

export interface BatchChange {
  readonly tenant: string;
  readonly id: string;
  /** The text as the caller has read it; undefined for a new batch. */
  readonly from: string | undefined;
  readonly to: string;
  /** The status of a batch that still has work to do; undefined for any other. */
  readonly open: string | undefined;
  /** The rates of the client who makes the batch; absent if it has none. */
  readonly rates?: readonly Rate[] | undefined;
}

export type WrittenBatch =
  | { readonly said: "written" | "conflict"; readonly rates?: readonly RateStanding[] | undefined }
  | { readonly said: "full" }
  | { readonly said: "too-soon"; readonly name: string; readonly waitUs: number };

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
  (reply): WrittenBatch => {
    const [first, ...rest] = list(reply);
    const said = word(first, ["written", "conflict", "full", "too-soon"]);
    if (said === "too-soon") return { said, name: text(rest[0]), waitUs: integer(rest[1]) };
    return said === "full" ? { said } : { said, rates: standingsOf(rest) };
  },
  {
    keys: ["batch", "openOfAll", "all", "open", "load"],
    args: ["tenant", "id", "from", "to", "open", "ttl", "mostOpen", "most", "rates", "repeated"],
    durable: true,
  },
);

/**
 * Safe to repeat.
 * @param isRepeated whether an earlier copy may have taken effect: then a batch that is there
 * counts in no rate
 */
export function writeBatch(
  redis: RedisClient,
  { tenant, id, from, to, open, rates }: BatchChange,
  { keptMs, open: mostOpen, known }: BatchLimits,
  isRepeated = false,
): Promise<WrittenBatch> {
  const keys = {
    batch: batchKeys.batch(tenant, id),
    openOfAll: batchKeys.openOfAll,
    all: batchKeys.all(tenant),
    open: batchKeys.openOf(tenant),
    load: redis.isCluster ? batchKeys.load : loadKey(undefined),
  };
  return script(redis, keys, {
    tenant,
    id,
    from: from ?? "",
    to,
    open: open ?? "",
    ttl: keptMs,
    mostOpen,
    most: known,
    rates: JSON.stringify(ratesOfCall([{ rates }]) ?? []),
    repeated: isRepeated ? 1 : 0,
  });
}
