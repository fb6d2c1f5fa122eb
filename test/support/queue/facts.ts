/** Reads the facts of a sequence from Redis, and changes them by hand. */
import type { Redis } from "ioredis";
import type { Lane } from "#shared/queue/address.js";
import { sequencesKey } from "#shared/queue/keys.js";
import { sequence } from "#shared/records/sequence.js";
import { parseFacts, type SequenceFacts } from "#shared/queue/pieces/sequence.js";

type Where = Pick<Lane, "bucket" | "model">;
type Client = Pick<Redis, "hget" | "hset" | "hdel">;

/** @param name of the sequence */
export async function factsOf(redis: Client, where: Where, name: string): Promise<SequenceFacts | undefined> {
  const text = await redis.hget(sequencesKey(where), name);
  return text === null ? undefined : parseFacts(text);
}

export async function changeFacts(
  redis: Client,
  where: Where,
  name: string,
  changes: Partial<SequenceFacts>,
): Promise<void> {
  const text = await redis.hget(sequencesKey(where), name);
  if (text === null) throw new Error(`there is no sequence ${name}`);
  await redis.hset(sequencesKey(where), name, sequence.write({ ...parseFacts(text), ...changes }));
}

export async function deleteFacts(redis: Client, where: Where, name: string): Promise<void> {
  await redis.hdel(sequencesKey(where), name);
}
