/** Reads a stream from Redis as it stands, past all gateways: the log is the truth that clients are compared with. */
import type { Redis } from "ioredis";
import { decodeRequestId, type RequestAddress } from "#shared/contract/request-id.js";
import { logKey, outcomeKey } from "#shared/keys.js";
import type { StoredStream } from "./check.js";

export async function readStored(redis: Redis, id: string): Promise<StoredStream> {
  const { lane, request } = addressOf(id);
  const [log, taken] = await Promise.all([
    redis.lrange(logKey(lane, request), 0, -1),
    redis.hget(outcomeKey(lane, request), "taken"),
  ]);
  const takenAt = /^\d+/.exec(taken ?? "")?.[0];
  return { log, takenAt: takenAt === undefined ? undefined : Number(takenAt) };
}

export function addressOf(id: string): RequestAddress {
  const address = decodeRequestId(id);
  if (address === undefined) throw new Error(`no public id: ${id}`);
  return address;
}
