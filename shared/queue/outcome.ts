/**
 * How a request's record (outcome.lua) is read with plain commands. Most records are hashes; that
 * of a brief request is a string once it has ended, and before that a field among what is counted.
 */
import type { RequestAddress } from "./address.js";
import { loadKeyOf } from "./load.js";
import { openKey, outcomeKey, requestInKey } from "./keys.js";
import type { RedisClient } from "../redis/connect.js";
import { readLasting } from "../redis/replicated.js";
import { isReplyError } from "../redis/script.js";

/** What a record says of its request; a field is undefined where it says nothing. */
export interface RequestRecord {
  /** `result` or `error`, once it has ended. */
  readonly kind?: string | undefined;
  /** Of a request that has ended; dropped after a time where the result was kept for long. */
  readonly body?: Buffer | undefined;
  /** Redis ms at which it was admitted, ended, or brought its first token. */
  readonly at?: number | undefined;
  readonly ended?: number | undefined;
  readonly began?: number | undefined;
  /** Whether the log of a stream has its final record. */
  readonly sealed: boolean;
  /** Whether a stream ends when nobody reads it. */
  readonly wanted: boolean;
  /** The pin that it was admitted for, as `pinText` has it. */
  readonly pin: string;
  /** The gateway process that admitted it. */
  readonly by?: string | undefined;
}

const FIELDS = ["digest", "kind", "body", "at", "began", "ended", "sealed", "wanted", "pin", "by"] as const;

/**
 * Reads what a client may be told: in the mode `replicated`, once a replica has it.
 * @returns undefined where Redis knows of no such request
 * @throws UnconfirmedError
 */
export async function readRecord(redis: RedisClient, address: RequestAddress): Promise<RequestRecord | undefined> {
  const key = outcomeKey(address);
  const record = await readOwnRecord(redis, key);
  if (record !== undefined) return record;
  const field = await readField(redis, openKey(loadKeyOf(redis, address.bucket)), requestInKey(key));
  // It may have ended since the record was looked for.
  return parseBrief(field) ?? readOwnRecord(redis, key);
}

async function readField(redis: RedisClient, open: string, name: string): Promise<string | undefined> {
  try {
    return ((await readLasting(redis, open, ["HGET", open, name])) as Buffer | null)?.toString();
  } catch (error) {
    // Somebody's hand has put something else there; a recount puts it right.
    if (isReplyError(error, "WRONGTYPE")) return undefined;
    throw error;
  }
}

/**
 * Does the same, but for a brief request that has not ended.
 * @param key from `outcomeKey`
 * @param brief whether it surely is the record of a brief request
 */
export async function readOwnRecord(
  redis: RedisClient,
  key: string,
  brief = false,
): Promise<RequestRecord | undefined> {
  if (brief) return parseEnded((await readLasting(redis, key, ["GET", key])) as Buffer | null);
  try {
    return parseHash((await readLasting(redis, key, ["HMGET", key, ...FIELDS])) as (Buffer | null)[]);
  } catch (error) {
    if (!isReplyError(error, "WRONGTYPE")) throw error;
    return parseEnded((await readLasting(redis, key, ["GET", key])) as Buffer | null);
  }
}

function parseHash(found: readonly (Buffer | null)[]): RequestRecord | undefined {
  const [digest, kind, body, at, began, ended, sealed, wanted, pin, by] = found;
  if (!digest) return undefined;
  const number = (field: Buffer | null | undefined) => (field ? Number(field.toString()) : undefined);
  return {
    kind: kind?.toString(),
    body: body ?? undefined,
    at: number(at),
    began: number(began),
    ended: number(ended),
    sealed: Boolean(sealed),
    wanted: Boolean(wanted),
    pin: pin?.toString() ?? "",
    by: by?.toString(),
  };
}

/** The string that is the record of a brief request which has ended. */
function parseEnded(record: Buffer | null): RequestRecord | undefined {
  if (record === null) return undefined;
  const end = record.indexOf("\n");
  const [ended, at, kind, pin = "", by] = record.toString("latin1", 0, end).split("|");
  const body = record.subarray(end + 1);
  return { ...notStream, kind, body, at: Number(at), ended: Number(ended), pin, by };
}

/** The field of a brief request that is counted, if it is one and has not ended. */
function parseBrief(field: string | undefined): RequestRecord | undefined {
  const [, , , at, , pin = "", by, ended] = field?.split("|") ?? [];
  return ended === "0" ? { ...notStream, at: Number(at), pin, by } : undefined;
}

const notStream = { sealed: false, wanted: false };
