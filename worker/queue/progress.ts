/** How far a stream has come: what a worker reads before it goes on with a request that may have been another's. */
import { tokenRecord, type TokenRecord } from "#shared/contract/generation.js";
import { storeOutcome, type StoredOutcome } from "#shared/contract/outcome.js";
import { logKey, outcomeKey, type Lane } from "#shared/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { defineScript, list, text } from "#shared/redis/script.js";

export interface Progress {
  /** As they were written, in order. */
  readonly records: readonly string[];
  /** `sealed`: the final record is in, and what is left is to commit what it says. `ended`: it has an outcome, or no record any more. */
  readonly state: "open" | "sealed" | "ended";
  /** Redis ms; undefined: the request runs for whoever reads. */
  readonly wantedUntil: number | undefined;
}

export interface TakenProgress extends Progress {
  /** Redis ms since when it has had no new record, as far as those know who took it over; 0 unless it is being taken over. */
  readonly standsSince: number;
}

const script = defineScript(new URL("./read-progress.lua", import.meta.url), (reply) => {
  const [joined, ...facts] = list(reply).map((part) => (part === null ? undefined : text(part)));
  return { ...progress(joined ? joined.split("\n") : [], facts), standsSince: Number(facts[4]) };
});

/** @param takenOver by the caller, from a worker that did not end them. @returns one per request, in order. */
export function readProgress(
  redis: RedisClient,
  lane: Lane,
  requests: readonly string[],
  takenOver = false,
): Promise<TakenProgress[]> {
  const args = [takenOver ? 1 : 0];
  return Promise.all(
    requests.map((request) => script(redis, [logKey(lane, request), outcomeKey(lane, request)], args)),
  );
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

function progress(records: readonly string[], [digest, kind, sealed, wanted]: readonly unknown[]): Progress {
  const ended = typeof digest !== "string" || typeof kind === "string";
  return {
    records,
    state: ended ? "ended" : typeof sealed === "string" ? "sealed" : "open",
    wantedUntil: typeof wanted === "string" ? Number(wanted) : undefined,
  };
}

/** Whether nobody is known to want the stream any more. */
export function isUnwanted({ wantedUntil }: Pick<Progress, "wantedUntil">, redisNow: number): boolean {
  return wantedUntil !== undefined && wantedUntil < redisNow;
}

/** What a sealed stream's final record says, as the outcome that is stored: the same whoever commits it. A result's body is that record. */
export function sealedOutcome(records: readonly string[]): StoredOutcome {
  const last = records.at(-1);
  const final = last === undefined ? undefined : readFinal(last);
  if (last === undefined || final === undefined)
    return storeOutcome({ kind: "error", code: "request_lost", message: "the stream's log is gone" });
  return final.error === undefined
    ? { kind: "result", body: Buffer.from(last) }
    : storeOutcome({ kind: "error", ...final.error });
}

/** @returns undefined for what is no final record: somebody has changed the log from outside. */
function readFinal(record: string): TokenRecord | undefined {
  try {
    const parsed = tokenRecord.parse(JSON.parse(record));
    return parsed.final === true ? parsed : undefined;
  } catch {
    return undefined;
  }
}
