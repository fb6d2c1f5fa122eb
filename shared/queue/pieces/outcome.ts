/**
 * How to read a request's record (outcome.lua) with plain commands. Most records are hashes. The
 * record of a brief request is a string after the end, and a field in the counts before.
 */
import type { RequestAddress } from "../address.js";
import { loadKeyOf } from "./load.js";
import { openKey, outcomeKey, requestInKey } from "../keys.js";
import { brief as briefFacts, outcome } from "../../records/requests.js";
import type { RedisClient } from "../../redis/connect.js";
import { readLasting } from "../../redis/replicated.js";
import { isReplyError } from "../../redis/script.js";

/** The record of a request; a field is undefined if the record does not have the field. */
export interface RequestRecord {
  /** `result` or `error`, once the request has ended. */
  readonly kind?: string | undefined;
  /** Of an ended request; absent once a kept result is gone. */
  readonly body?: Buffer | undefined;
  /** Redis ms of the admission, of the end, and of the first token. */
  readonly at?: number | undefined;
  readonly ended?: number | undefined;
  readonly began?: number | undefined;
  /** Whether the log of a stream has its final record. */
  readonly sealed: boolean;
  /** Whether a stream ends without a reader. */
  readonly wanted: boolean;
  /** The pin of the request's lane, as `pinText` writes it. */
  readonly pin: string;
  /** The gateway process that admitted it. */
  readonly by?: string | undefined;
}

const FIELDS = ["digest", "kind", "body", "at", "began", "ended", "sealed", "wanted", "pin", "by"] as const;

/**
 * Reads a record that a client may see: in the mode `replicated`, once a replica has the record.
 * @returns undefined if Redis knows of no such request
 * @throws UnconfirmedError
 */
export async function readRecord(redis: RedisClient, address: RequestAddress): Promise<RequestRecord | undefined> {
  const key = outcomeKey(address);
  const record = await readOwnRecord(redis, key);
  if (record !== undefined) return record;
  const field = await readField(redis, openKey(loadKeyOf(redis, address.bucket)), requestInKey(key));
  // The request may have ended since the first look at the record.
  return parseBrief(field) ?? readOwnRecord(redis, key);
}

async function readField(redis: RedisClient, open: string, name: string): Promise<string | undefined> {
  try {
    return ((await readLasting(redis, open, ["HGET", open, name])) as Buffer | null)?.toString();
  } catch (error) {
    // A person has put another value there by hand; a recount repairs the key.
    if (isReplyError(error, "WRONGTYPE")) return undefined;
    throw error;
  }
}

/**
 * Does the same, but does not find a brief request before the end.
 * @param key from `outcomeKey`
 * @param brief whether the record surely belongs to a brief request
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

/** The string that is the record of an ended brief request. */
function parseEnded(record: Buffer | null): RequestRecord | undefined {
  if (record === null) return undefined;
  const begin = record.indexOf("\n") + 1;
  const head = outcome.read(record.toString("latin1", 0, begin));
  if (head === undefined) return undefined;
  const { ended, at, kind, pin, gateway: by } = head;
  return { ...notStream, kind, body: record.subarray(begin), at, ended, pin, by };
}

/** The field of a brief request in the counts; undefined for any other request or an ended one. */
function parseBrief(field: string | undefined): RequestRecord | undefined {
  const facts = briefFacts.read(field ?? "");
  return facts?.ended === "0" ? { ...notStream, at: facts.at, pin: facts.pin, by: facts.gateway } : undefined;
}

const notStream = { sealed: false, wanted: false };
