/** The facts of a sequence, which sequence.lua keeps, read with a plain command. */
import type { Lane } from "../address.js";
import { sequencesKey } from "../keys.js";
import type { Values } from "../../records/record.js";
import { sequence } from "../../records/sequence.js";
import type { RedisClient } from "../../redis/connect.js";

export type SequenceFacts = Values<typeof sequence.fields>;

/**
 * @param names from `sequenceName`, of sequences of one model and bucket
 * @returns undefined for each that does not exist, or has no readable facts
 */
export async function readSequences(
  redis: RedisClient,
  lane: Pick<Lane, "bucket" | "model">,
  names: readonly string[],
): Promise<(SequenceFacts | undefined)[]> {
  if (names.length === 0) return [];
  const texts = await redis.hmget(sequencesKey(lane), ...names);
  return texts.map((text) => sequence.read(text ?? ""));
}

/**
 * @param text the value of the sequence's field
 * @throws TypeError for any other text
 */
export function parseFacts(text: string): SequenceFacts {
  return sequence.parse(text);
}
