/**
 * The typed wrapper of fork.lua: makes a second sequence that goes on from where one stands. Where
 * the new one's bucket is another one, the caller exports the old one and imports it as the new
 * one.
 */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { modelTag } from "../keys.js";
import { keysOf, type SequenceAddress, type SequenceTerms } from "./address.js";

const answers = ["forked", "unknown", "busy", "exists", "gone", "too-many-sequences"] as const;
export type Forking = (typeof answers)[number];

const script = defineScript(new URL("./fork.lua", import.meta.url), (reply) => word(reply, answers), {
  durable: true,
});

/**
 * @param name of the new sequence, whose bucket is that of the old one
 * @returns Safe to repeat until either has another step; of a sequence that has no checkpoint yet,
 * a repeated call says `exists`.
 */
export function fork(
  redis: RedisClient,
  sequence: SequenceAddress,
  name: string,
  { maxIdleMs, liveSequences }: SequenceTerms,
): Promise<Forking> {
  const { seqs, live } = keysOf(sequence);
  return script(redis, [seqs, live], [modelTag(sequence), sequence.name, name, maxIdleMs, liveSequences]);
}
