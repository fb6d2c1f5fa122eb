/**
 * Reads a stream from Redis, past all gateways. Checks compare clients with the log, which is the
 * truth.
 */
import type { Redis } from "ioredis";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { decodeRequestId, type RequestAddress } from "#shared/queue/address.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import { GROUP, logKey, outcomeKey } from "#shared/queue/keys.js";
import type { StoredStream } from "./check.js";
import type { Fleet } from "../fleet/fleet.js";
import type { Member } from "../fleet/member.js";
import type { KeyReader } from "../fleet/store.js";
import { allKeys } from "../sequences/floor.js";

export async function readStored(
  redis: Pick<KeyReader, "lrange" | "hget">,
  id: string,
  tenant = DEFAULT_TENANT,
): Promise<StoredStream> {
  const address = addressOf(id, tenant);
  const [log, taken] = await Promise.all([
    redis.lrange(logKey(address), 0, -1),
    redis.hget(outcomeKey(address), "taken"),
  ]);
  const takenAt = /^\d+/.exec(taken ?? "")?.[0];
  return { log, takenAt: takenAt === undefined ? undefined : Number(takenAt) };
}

export function addressOf(id: string, tenant = DEFAULT_TENANT): RequestAddress {
  const address = decodeRequestId(id, tenant);
  if (address === undefined) throw new Error(`no public id: ${id}`);
  return address;
}

/**
 * With 40 ms each way, a worker makes at most eight iterations in a round trip: a stream of
 * hundreds of tokens takes seconds, so that a fault can strike its worker before the end. The fleet
 * must not be `direct`. Healing the line ends the delay.
 */
export function slowDown({ lines }: Fleet): void {
  lines.workerRedis.delay(40);
}

/**
 * The worker that holds the request, so that a fault can strike this worker. No other request of
 * the same model may be in the request's bucket.
 */
export async function holderOf(redis: Redis, workers: readonly Member[], id: string): Promise<Member> {
  const { bucket, model } = addressOf(id);
  const streams = await redis.keys(`ready:${bucketTag(bucket)}:${model}:*`);
  const lists = await Promise.all(streams.map((ready) => redis.xpending(ready, GROUP, "-", "+", 2)));
  const pending = lists.flat() as [string, string][];
  const [one, other] = pending;
  if (one === undefined || other !== undefined) throw new Error(`${pending.length} requests are in workers' hands`);
  // A consumer's name is its worker's name, followed by an id of this start.
  const holder = workers.find(({ name }) => one[1].startsWith(name));
  if (holder === undefined) throw new Error(`no worker is called ${one[1]}`);
  return holder;
}

export interface Ended {
  /** `result`, the code of an error, or `open`. */
  readonly how: string;
  /** Whether the request ran without readers. */
  readonly background: boolean;
  readonly records: number;
}

/**
 * How the requests that are new since `known` have ended. Adds these requests to `known`. The test
 * does not know their ids, because their clients left too early.
 */
export async function newOutcomes(redis: Redis, known: Set<string>): Promise<Ended[]> {
  const keys = (await allKeys(redis, "out:*")).filter((key) => !known.has(key));
  for (const key of keys) known.add(key);
  return Promise.all(
    keys.map(async (key) => {
      const [fields, records] = await Promise.all([
        redis.hmget(key, "kind", "body", "wanted"),
        redis.llen(key.replace("out:", "log:")),
      ]);
      const [kind, body, wanted] = fields;
      return { how: howOf(kind, body), background: wanted === null, records };
    }),
  );
}

function howOf(kind: string | null | undefined, body: string | null | undefined): string {
  if (kind === "error") return (JSON.parse(body ?? "{}") as { code?: string }).code ?? "error without a code";
  return kind ?? "open";
}
