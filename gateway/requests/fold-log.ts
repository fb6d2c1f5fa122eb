/** A whole log as what was said: for clients that come back for the answer alone. */
import { tokenRecord, type TokenRecord } from "#shared/contract/generation.js";
import type { RequestAddress } from "#shared/contract/request-id.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { readLogs } from "../stream/read-logs.js";

export interface FoldedLog {
  readonly choices: readonly FoldedChoice[];
  readonly usage: TokenRecord["usage"];
  /** Of the final record. */
  readonly error: TokenRecord["error"];
}

interface FoldedChoice {
  readonly index: number;
  text: string;
  /** null for a choice that was cut short. */
  finish_reason: "stop" | "length" | null;
}

/** Page by page: others are served in between. Undefined for a request without a log: a tensor model's. */
export async function foldLog(redis: RedisClient, address: RequestAddress): Promise<FoldedLog | undefined> {
  const choices: FoldedChoice[] = [];
  let last: TokenRecord | undefined;
  let from = 0;
  for (let more = true; more;) {
    const [page] = await readLogs(redis, [{ ...address, from }]);
    if (page?.said !== "records") break;
    for (const json of page.records) {
      last = tokenRecord.parse(JSON.parse(json));
      for (const delta of last.choices) {
        const choice = (choices[delta.index] ??= { index: delta.index, text: "", finish_reason: null });
        choice.text += delta.text;
        choice.finish_reason = delta.finish_reason ?? choice.finish_reason;
      }
    }
    from += page.records.length;
    more = page.more;
  }
  if (last === undefined) return undefined;
  return { choices: choices.filter((choice) => choice !== undefined), usage: last.usage, error: last.error };
}
