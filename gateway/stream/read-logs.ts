/** The typed wrapper of read-logs.lua. */
import { readOutcome, type Outcome } from "#shared/contract/outcome.js";
import type { RequestAddress } from "#shared/contract/request-id.js";
import { logKey, outcomeKey } from "#shared/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { bytes, defineScript, integer, list, text } from "#shared/redis/script.js";

/** What a log holds at and after an index. */
export type Page =
  | { readonly said: "records"; readonly records: readonly string[]; readonly more: boolean }
  /** Nothing there yet. */
  | { readonly said: "running"; readonly length: number }
  /** Nothing there, and nothing will come. `last` is the last record before; undefined where the log is empty or gone. A result's body is left out. */
  | { readonly said: "ended"; readonly length: number; readonly outcome: Outcome; readonly last: string | undefined }
  /** There is no such request, or not any more. */
  | { readonly said: "unknown"; readonly length: number };

export interface LogRead extends RequestAddress {
  readonly from: number;
}

/** A reader that has fallen behind holds one page; hundreds may. */
const PAGE = { records: 64, bytes: 16_384 };
/** Past this a call gives one record of each further log: more would hold up everybody's commits. */
const BYTES_PER_CALL = 524_288;
/** What a live stream's reader finds is one record, or a few; of large ones, few are taken out that are not given. */
const FIRST_RECORDS = 2;

const script = defineScript<Page[]>(new URL("./read-logs.lua", import.meta.url), (reply) => list(reply).map(readPage));

/** @param reads of one lane. @returns one page per read, in order. */
export function readLogs(redis: RedisClient, reads: readonly LogRead[]): Promise<Page[]> {
  const keys = reads.flatMap(({ lane, request }) => [logKey(lane, request), outcomeKey(lane, request)]);
  return script(redis, keys, [
    PAGE.records,
    PAGE.bytes,
    BYTES_PER_CALL,
    FIRST_RECORDS,
    ...reads.map(({ from }) => from),
  ]);
}

function readPage(reply: unknown): Page {
  const [first, second, third, kind, body, last] = list(reply);
  const count = integer(first);
  if (count > 0) return { said: "records", records: recordsOf(text(second), count), more: integer(third) === 1 };
  const [length, known] = [integer(second), third];
  if (integer(known) === 0) return { said: "unknown", length };
  if (text(kind) === "") return { said: "running", length };
  const outcome = readOutcome(text(kind), bytes(body));
  return { said: "ended", length, outcome, last: text(last) === "" ? undefined : text(last) };
}

/** They come as one text: of many small ones it costs less than a list. */
function recordsOf(lines: string, count: number): string[] {
  const records = lines.split("\n");
  if (records.length !== count) throw new TypeError("a record of a log is no line");
  return records;
}
