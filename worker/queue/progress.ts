/** How far a stream has come: what a worker reads before it goes on with a request that may have been another's. */
import { tokenRecord, type TokenRecord } from "#shared/contract/generation.js";
import { storeOutcome, type StoredOutcome } from "#shared/contract/outcome.js";
import { logKey, outcomeKey, type Lane } from "#shared/keys.js";
import { dropIfSilent, type RedisClient } from "#shared/redis/connect.js";
import { bytes, list } from "#shared/redis/script.js";

export interface Progress {
  /** As they were written, in order. */
  readonly records: readonly Buffer[];
  /** `sealed`: the final record is in, and what is left is to commit what it says. `ended`: it has an outcome, or no record any more. */
  readonly state: "open" | "sealed" | "ended";
  /** Redis ms; undefined: the request runs for whoever reads. */
  readonly wantedUntil: number | undefined;
}

/** @returns one per request, in order. */
export async function readProgress(redis: RedisClient, lane: Lane, requests: readonly string[]): Promise<Progress[]> {
  const pipeline = redis.pipeline();
  for (const request of requests) {
    // In this order: a request that is cancelled in between reads as ended, never as an open one with a record too many.
    pipeline.lrangeBuffer(logKey(lane, request), 0, -1);
    pipeline.hmget(outcomeKey(lane, request), "digest", "kind", "sealed", "wanted");
  }
  const replies = (await pipeline.exec()) ?? [];
  const values = replies.map(([error, value]) => {
    if (error === null) return list(value);
    dropIfSilent(redis, error);
    throw error;
  });
  return requests.map((_, i) => progress(values[2 * i] ?? [], values[2 * i + 1] ?? []));
}

export type Standing = Pick<Progress, "state" | "wantedUntil">;

/** The same without the records. */
export async function readStanding(redis: RedisClient, lane: Lane, requests: readonly string[]): Promise<Standing[]> {
  const pipeline = redis.pipeline();
  for (const request of requests) pipeline.hmget(outcomeKey(lane, request), "digest", "kind", "sealed", "wanted");
  const replies = (await pipeline.exec()) ?? [];
  return replies.map(([error, value]) => {
    if (error !== null) throw error;
    return progress([], list(value));
  });
}

function progress(records: readonly unknown[], [digest, kind, sealed, wanted]: readonly unknown[]): Progress {
  const ended = typeof digest !== "string" || typeof kind === "string";
  return {
    records: records.map(bytes),
    state: ended ? "ended" : typeof sealed === "string" ? "sealed" : "open",
    wantedUntil: typeof wanted === "string" ? Number(wanted) : undefined,
  };
}

/** Whether nobody is known to want the stream any more. */
export function isUnwanted({ wantedUntil }: Pick<Progress, "wantedUntil">, redisNow: number): boolean {
  return wantedUntil !== undefined && wantedUntil < redisNow;
}

/** What a sealed stream's final record says, as the outcome that is stored: the same whoever commits it. A result's body is that record. */
export function sealedOutcome(records: readonly Buffer[]): StoredOutcome {
  const body = records.at(-1);
  const final = body && readFinal(body);
  if (body === undefined || final === undefined)
    return storeOutcome({ kind: "error", code: "request_lost", message: "the stream's log is gone" });
  return final.error === undefined ? { kind: "result", body } : storeOutcome({ kind: "error", ...final.error });
}

/** @returns undefined for what is no final record: somebody has changed the log from outside. */
function readFinal(record: Buffer): TokenRecord | undefined {
  try {
    const parsed = tokenRecord.parse(JSON.parse(record.toString("utf8")));
    return parsed.final === true ? parsed : undefined;
  } catch {
    return undefined;
  }
}
