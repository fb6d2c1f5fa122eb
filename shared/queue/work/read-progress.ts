/**
 * The typed wrapper of read-progress.lua: how far a stream has come. A worker reads it before it
 * goes on with a request that may have been another worker's.
 */
import type { RequestAddress } from "../address.js";
import { logKey, outcomeKey } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list, text } from "../../redis/script.js";

export interface Progress {
  /** The records as they were written, in order. */
  readonly records: readonly string[];
  /**
   * `sealed`: the log has the final record, and only the commit of what it says is left. `ended`:
   * the request has an outcome, or no outcome hash any more.
   */
  readonly state: "open" | "sealed" | "ended";
  /**
   * Redis ms until which somebody surely wants the stream; undefined: it runs to its end whether or
   * not anybody reads it.
   */
  readonly wantedUntil: number | undefined;
}

export interface TakenProgress extends Progress {
  /**
   * Redis ms since when it has had no new record, as far as the workers know that took it over; 0
   * unless it is being taken over.
   */
  readonly standsSince: number;
}

const script = defineScript(new URL("./read-progress.lua", import.meta.url), (reply) => {
  const [joined, ...facts] = list(reply).map((part) => (part === null ? undefined : text(part)));
  return { ...progress(joined ? joined.split("\n") : [], facts), standsSince: Number(facts[4]) };
});

/**
 * @param takenOver whether the caller takes the streams over from a worker that did not end them
 * @returns one per address, in order
 */
export function readProgress(
  redis: RedisClient,
  addresses: readonly RequestAddress[],
  takenOver = false,
): Promise<TakenProgress[]> {
  const args = [takenOver ? 1 : 0];
  return Promise.all(addresses.map((address) => script(redis, [logKey(address), outcomeKey(address)], args)));
}

export type StreamState = Pick<Progress, "state" | "wantedUntil">;

/**
 * The same without the records, by plain commands.
 * @returns one per address, in order
 */
export async function readStreamStates(
  redis: RedisClient,
  addresses: readonly RequestAddress[],
): Promise<StreamState[]> {
  return Promise.all(
    addresses.map(async (address) => {
      return progress([], await redis.hmget(outcomeKey(address), "digest", "kind", "sealed", "wanted"));
    }),
  );
}

function progress(records: readonly string[], [digest, kind, sealed, wanted]: readonly unknown[]): Progress {
  const ended = typeof digest !== "string" || typeof kind === "string";
  return {
    records,
    state: ended ? "ended" : typeof sealed === "string" ? "sealed" : "open",
    wantedUntil: typeof wanted === "string" ? Number(wanted) : undefined,
  };
}

/**
 * Whether nobody is known to want the stream any more.
 * @param redisNow Redis time in ms
 */
export function isUnwanted({ wantedUntil }: Pick<Progress, "wantedUntil">, redisNow: number): boolean {
  return wantedUntil !== undefined && wantedUntil < redisNow;
}
