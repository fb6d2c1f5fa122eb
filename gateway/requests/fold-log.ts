/** A whole log as what was said: for clients that come back for the answer alone. */
import { tokenRecord, type TokenRecord } from "#shared/contract/generation.js";
import type { RequestAddress } from "#shared/contract/request-id.js";
import { logKey } from "#shared/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";

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

/** Records at a time: others are served in between. */
const PAGE = 256;

/** Undefined for a request without a log: a tensor model's. */
export async function foldLog(redis: RedisClient, { lane, request }: RequestAddress): Promise<FoldedLog | undefined> {
  const key = logKey(lane, request);
  const choices: FoldedChoice[] = [];
  let last: TokenRecord | undefined;
  for (let from = 0; ; from += PAGE) {
    const page = await redis.lrange(key, from, from + PAGE - 1);
    for (const text of page) {
      last = tokenRecord.parse(JSON.parse(text));
      for (const delta of last.choices) {
        const choice = (choices[delta.index] ??= { index: delta.index, text: "", finish_reason: null });
        choice.text += delta.text;
        choice.finish_reason = delta.finish_reason ?? choice.finish_reason;
      }
    }
    if (page.length < PAGE) break;
  }
  if (last === undefined) return undefined;
  return { choices: choices.filter((choice) => choice !== undefined), usage: last.usage, error: last.error };
}
