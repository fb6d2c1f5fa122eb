/** The index of live sequences, which live.lua keeps, read with plain commands. */
import type { Lane } from "../address.js";
import { liveKey } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { readSequences, type SequenceFacts } from "./sequence.js";

export interface LiveSequence {
  readonly name: string;
  /** Its time in the index: Redis ms, at which it expires idle, or earlier. */
  readonly at: number;
  /** Undefined if somebody has removed the sequence by hand, or has made its facts unreadable. */
  readonly facts: SequenceFacts | undefined;
}

/** @returns up to `most` sequences with times from `from` to `until`, the earliest first */
export async function readLive(
  redis: RedisClient,
  where: Pick<Lane, "bucket" | "model">,
  { from, until, most }: { readonly from: number; readonly until: number; readonly most: number },
): Promise<LiveSequence[]> {
  const key = liveKey(where);
  const found = await redis.zrange(key, String(from), String(until), "BYSCORE", "LIMIT", 0, most, "WITHSCORES");
  const names = found.filter((_, i) => i % 2 === 0);
  const facts = await readSequences(redis, where, names);
  return names.map((name, i) => ({ name, at: Number(found[2 * i + 1]), facts: facts[i] }));
}
