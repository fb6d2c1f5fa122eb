/**
 * All pins that were ever served, so that upkeep finds the lanes of a pin without workers. No other
 * key lists lanes.
 */
import { z } from "zod";
import type { RedisClient } from "../redis/connect.js";
import type { Pin } from "./address.js";
import { registryKeys } from "./keys.js";

/** One version of a model, as one set of files, with the facts for clearing its lanes. */
export interface ServedPin extends Pin {
  readonly model: string;
  readonly streams: boolean;
  /** How long sequences live between their steps; undefined if the model has none. */
  readonly maxIdleMs: number | undefined;
}

const field = z.tuple([z.string(), z.string(), z.string()]);
const value = z.object({ streams: z.boolean(), maxIdleMs: z.number().optional() });

/**
 * Notes a pin with queued work in its lane, so that upkeep looks after the pin. The pin may be
 * missing, because upkeep may have forgotten the pin while its step waited behind a step of another
 * version.
 * @returns whether the pin was missing
 */
export async function notePinInUse(redis: RedisClient, pin: ServedPin): Promise<boolean> {
  const added = await redis.hsetnx(registryKeys.pins, pinField(pin), pinValue(pin));
  if (added === 1) await redis.del(registryKeys.settled);
  return added === 1;
}

/** Leaves out unreadable fields, which another version of Baton has written. */
export async function readPins(redis: RedisClient): Promise<ServedPin[]> {
  const noted = await redis.hgetall(registryKeys.pins);
  return Object.entries(noted).flatMap(([key, text]) => {
    const names = field.safeParse(parse(key));
    const facts = value.safeParse(parse(text));
    if (!names.success || !facts.success) return [];
    const [model, version, digest] = names.data;
    const { streams, maxIdleMs } = facts.data;
    return { model, version, digest, streams, maxIdleMs };
  });
}

export async function forgetPin(redis: RedisClient, pin: ServedPin): Promise<void> {
  await redis.hdel(registryKeys.pins, pinField(pin));
}

/** Names a pin in the hash. */
export function pinField({ model, version, digest }: ServedPin): string {
  return JSON.stringify([model, version, digest]);
}

/** The value of a pin in the hash. */
export function pinValue({ streams, maxIdleMs }: ServedPin): string {
  return JSON.stringify({ streams, maxIdleMs } satisfies z.infer<typeof value>);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
