/** The typed wrapper of append-tokens.lua: a token that a client has seen went through here first. */
import { GROUP, laneKeys, logKey, outcomeKey } from "#shared/keys.js";
import { defineScript, words, type Arg } from "#shared/redis/script.js";
import { chunks } from "#shared/chunks.js";
import type { StreamQueue } from "./lane.js";
import { span } from "./span.js";

export interface Append {
  readonly entry: string;
  readonly request: string;
  /** Index of the first of `records`. */
  readonly first: number;
  /** JSON of token records; at least one. */
  readonly records: readonly (Buffer | string)[];
  /** Whether the last of `records` is the stream's final one. */
  readonly final: boolean;
}

const answers = ["appended", "lost", "ended", "unwanted", "gap"] as const;
export type Appended = (typeof answers)[number];

const script = defineScript(new URL("./append-tokens.lua", import.meta.url), words(answers));

/** What one call writes at most, unless a single request has more: past that it would hold up everybody's renewals. */
const PER_CALL = { bytes: 524_288, items: 256 };

/** @param heedWanted false while gateways may not have been able to say that a stream is wanted. @returns one word per append, in order. Safe to repeat with the same records: what an earlier call appended reads as `appended`. */
export async function appendTokens(
  queue: StreamQueue,
  appends: readonly Append[],
  { heedWanted } = { heedWanted: true },
): Promise<Appended[]> {
  const calls = chunks(appends, writtenBytes, PER_CALL).map((chunk) => appendChunk(queue, chunk, heedWanted));
  return (await Promise.all(calls)).flat();
}

function appendChunk(
  { redis, lane, consumer }: StreamQueue,
  appends: readonly Append[],
  heedWanted: boolean,
): Promise<Appended[]> {
  const keys = [laneKeys(lane).ready];
  const args: Arg[] = [GROUP, consumer, heedWanted ? 1 : 0, ...span(appends.map(({ entry }) => entry))];
  for (const { entry, request, first, records, final } of appends) {
    keys.push(outcomeKey(lane, request), logKey(lane, request));
    args.push(entry, first, final ? 1 : 0, records.length, ...records);
  }
  return script(redis, keys, args);
}

function writtenBytes({ records }: Append): number {
  return records.reduce((sum, record) => sum + Buffer.byteLength(record), 0);
}
