/**
 * The typed wrapper of read-progress.lua: the progress of a stream. A worker reads it before it
 * continues a request that another worker may have had.
 */
import type { RequestAddress } from "../../address.js";
import { logKey, outcomeKey } from "../../keys.js";
import type { RedisClient } from "../../../redis/connect.js";
import { defineScript, list, text } from "../../../redis/script.js";

export interface Progress {
  /** The records as text, in order. */
  readonly records: readonly string[];
  /**
   * `sealed`: the log has the final record, and only the commit of its outcome is left. `ended`:
   * the request has an outcome, or its outcome hash is gone.
   */
  readonly state: "open" | "sealed" | "ended";
  /**
   * Redis ms until which a client surely wants the stream. Undefined if the stream runs to its end
   * even without a reader.
   */
  readonly wantedUntil: number | undefined;
}

export interface TakenProgress extends Progress {
  /**
   * Redis ms since when the log has had no new record, as far as the workers know that took it
   * over; 0 without a takeover.
   */
  readonly standsSince: number;
}

const script = defineScript(
  new URL("./read-progress.lua", import.meta.url),
  (reply) => {
    const parts = list(reply).map((part) => (part === null ? undefined : text(part)));
    const [joined, digest, kind, sealed, wanted, since] = parts;
    const records = joined ? joined.split("\n") : [];
    return { ...progress(records, [digest, kind, sealed, wanted]), standsSince: Number(since) };
  },
  { keys: ["log", "record"], args: ["takenOver"] },
);

/**
 * @param takenOver whether the caller takes the streams over from a worker that did not end them
 * @returns the progress for each address, in order
 */
export function readProgress(
  redis: RedisClient,
  addresses: readonly RequestAddress[],
  takenOver = false,
): Promise<TakenProgress[]> {
  const args = { takenOver: takenOver ? 1 : 0 };
  const keysOf = (address: RequestAddress) => ({ log: logKey(address), record: outcomeKey(address) });
  return Promise.all(addresses.map((address) => script(redis, keysOf(address), args)));
}

export type StreamState = Pick<Progress, "state" | "wantedUntil">;

/**
 * Reads the state without the records, by plain commands.
 * @returns the state for each address, in order
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
 * Whether the time is over until which a client surely wants the stream.
 * @param redisNow Redis time in ms
 */
export function isUnwanted({ wantedUntil }: Pick<Progress, "wantedUntil">, redisNow: number): boolean {
  return wantedUntil !== undefined && wantedUntil < redisNow;
}
