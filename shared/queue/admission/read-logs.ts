/** The typed wrapper of read-logs.lua. */
import { readOutcome, type Outcome } from "../../contract/outcome.js";
import type { RequestAddress } from "../address.js";
import { inCalls } from "../calls.js";
import { loadKeyOf } from "../pieces/load.js";
import { logKey, outcomeKey } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { bytes, defineScript, integer, list, text } from "../../redis/script.js";

/** The content of a log at and after an index. */
export type Page =
  | {
      readonly said: "records";
      readonly records: readonly string[];
      readonly more: boolean;
      /** The text of the worker's timings, with the final record; undefined if there are none. */
      readonly note: string | undefined;
    }
  /** The log has nothing there yet. */
  | { readonly said: "running"; readonly length: number }
  /**
   * The log has nothing there, and nothing will come. `last` is the last record of the log;
   * undefined if the log is empty or gone. `outcome` lacks the body of a result.
   */
  | { readonly said: "ended"; readonly length: number; readonly outcome: Outcome; readonly last: string | undefined }
  /** There is no such request, or no longer. */
  | { readonly said: "unknown"; readonly length: number };

export interface LogRead extends RequestAddress {
  /** Index of the first record to read. */
  readonly from: number;
}

/**
 * Most records and bytes of a page. Hundreds of readers that have fallen behind may hold a page
 * each.
 */
const PAGE = { records: 64, bytes: 16_384 };
/**
 * Past this a call gives a single record of each further log: a longer call would delay the commits
 * of all workers.
 */
const BYTES_PER_CALL = 524_288;
/**
 * Records to fetch first of each log. A reader of a live stream mostly finds one or two records,
 * and the script fetches few large records in vain.
 */
const FIRST_RECORDS = 2;

/**
 * Durable although the script ends nothing: a client that has received a record must find it again.
 */
const script = defineScript(new URL("./read-logs.lua", import.meta.url), (reply) => list(reply).map(readPage), {
  keys: ["load", { requests: ["log", "record"] }],
  args: ["most", "enough", "enoughOfAll", "first", { from: [] }],
  durable: true,
});

/** @returns a page for each read, in order */
export function readLogs(redis: RedisClient, reads: readonly LogRead[]): Promise<Page[]> {
  const limits = { most: PAGE.records, enough: PAGE.bytes, enoughOfAll: BYTES_PER_CALL, first: FIRST_RECORDS };
  return inCalls(
    redis,
    reads,
    ({ bucket }) => bucket,
    (some) => {
      const load = loadKeyOf(redis, some[0]?.bucket ?? 0);
      const requests = some.map((read) => ({ log: logKey(read), record: outcomeKey(read) }));
      return script(redis, { load, requests }, { ...limits, from: some.map(({ from }) => from) });
    },
  );
}

function readPage(reply: unknown): Page {
  const [first, second, third, kind, body, last] = list(reply);
  const count = integer(first);
  if (count > 0) {
    const note = text(kind);
    const records = recordsOf(text(second), count);
    return { said: "records", records, more: integer(third) === 1, note: note === "" ? undefined : note };
  }
  const [length, known] = [integer(second), third];
  if (integer(known) === 0) return { said: "unknown", length };
  if (text(kind) === "") return { said: "running", length };
  const outcome = readOutcome(text(kind), bytes(body));
  return { said: "ended", length, outcome, last: text(last) === "" ? undefined : text(last) };
}

/** Records come as a single text: for many small records that costs less than a list. */
function recordsOf(lines: string, count: number): string[] {
  const records = lines.split("\n");
  if (records.length !== count) throw new TypeError("a record of a log is no line");
  return records;
}
