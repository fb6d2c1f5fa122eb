/**
 * Which pins were ever served, so that their lanes are found when nobody serves them any more: the
 * keys of lanes are not listed anywhere else.
 */
import { z } from "zod";
import type { RedisClient } from "../redis/connect.js";
import type { Pin } from "./address.js";
import { registryKeys } from "./keys.js";

/** One version of a model, as one set of files, with what clearing its lanes takes. */
export interface ServedPin extends Pin {
  readonly model: string;
  readonly streams: boolean;
  /** How long its sequences are kept between their steps; undefined where it has none. */
  readonly maxIdleMs: number | undefined;
}

const field = z.tuple([z.string(), z.string(), z.string()]);
const value = z.object({ streams: z.boolean(), maxIdleMs: z.number().optional() });

/**
 * Notes a pin in whose lane something is queued, so that it is looked after, unless it is noted. It
 * may have been forgotten while a step for it waited behind one of another version.
 * @returns whether it was not
 */
export async function notePinInUse(redis: RedisClient, pin: ServedPin): Promise<boolean> {
  const added = await redis.hsetnx(registryKeys.pins, pinField(pin), pinValue(pin));
  if (added === 1) await redis.del(registryKeys.settled);
  return added === 1;
}

/** What cannot be read, which another version of Baton has written, is left out. */
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

/** What the hash holds of a pin. */
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
