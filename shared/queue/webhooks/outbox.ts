/**
 * Takes events out of the outbox, as jobs processes do. Replicas share a consumer group, so each
 * entry goes to one replica. An entry stays until a replica acknowledges the entry, and living
 * replicas take over a dead replica's entries.
 */
import type { BlockingReader, RedisClient } from "../../redis/connect.js";
import { isReplyError, list, text } from "../../redis/script.js";
import { reapConsumers } from "../reap-consumers.js";

export interface OutboxEntry {
  readonly key: string;
  /** The id in the stream: Redis's time in ms, and a count. */
  readonly id: string;
  readonly tenant: string;
  readonly type: string;
  /** As JSON. */
  readonly facts: string;
}

const GROUP = "jobs";
/** Entries per read. */
const COUNT = 64;
const FIRST = "0-0";

/** Waits up to `blockMs` for entries that no consumer has had. */
export async function readEvents(
  redis: BlockingReader,
  keys: readonly string[],
  consumer: string,
  blockMs: number,
): Promise<OutboxEntry[]> {
  const fresh = keys.map(() => ">");
  const wait = ["COUNT", COUNT, "BLOCK", blockMs, "STREAMS", ...keys, ...fresh];
  const reply = await redis.callBuffer("XREADGROUP", ["GROUP", GROUP, consumer, ...wait]);
  if (reply === null) return [];
  return list(reply).flatMap((stream) => {
    const [key, entries] = list(stream);
    return list(entries).flatMap((entry) => decode(text(key), entry));
  });
}

/** A part of the entries taken over, and the beginning of the next part. */
export interface TakenOver {
  readonly entries: readonly OutboxEntry[];
  /** Undefined after the last part. */
  readonly next: string | undefined;
}

/**
 * Takes over the entries that other consumers have had for longer than `idleMs`, and this
 * consumer's own old entries.
 * @param from the beginning of this part
 */
export async function takeOverEvents(
  redis: RedisClient,
  key: string,
  consumer: string,
  idleMs: number,
  from = FIRST,
): Promise<TakenOver> {
  const reply = await redis.callBuffer("XAUTOCLAIM", [key, GROUP, consumer, idleMs, from, "COUNT", COUNT]);
  const [cursor, entries] = list(reply);
  const next = text(cursor);
  return {
    entries: list(entries).flatMap((entry) => decode(key, entry)),
    next: next === FIRST ? undefined : next,
  };
}

/**
 * Removes an entry after its work. Deletes first and acknowledges then: taking over clears a
 * deleted pending entry away, but no consumer would find an acknowledged entry that still exists.
 */
export async function acknowledgeEvent(redis: RedisClient, { key, id }: OutboxEntry): Promise<void> {
  await redis.xdel(key, id);
  await redis.xack(key, GROUP, id);
}

export async function createEventsGroup(redis: RedisClient, key: string): Promise<void> {
  try {
    await redis.xgroup("CREATE", key, GROUP, "0", "MKSTREAM");
  } catch (error) {
    if (!isReplyError(error, "BUSYGROUP")) throw error;
  }
}

/**
 * Removes consumers without entries that have not read for `idleMs`: each start makes a consumer.
 */
export async function removeIdleConsumers(redis: RedisClient, key: string, idleMs: number): Promise<void> {
  await reapConsumers(redis, key, GROUP, idleMs);
}

/** An entry with deleted or unknown fields gives empty texts. */
function decode(key: string, entry: unknown): OutboxEntry[] {
  const [id, fields] = list(entry);
  if (!Array.isArray(fields)) return [{ key, id: text(id), tenant: "", type: "", facts: "{}" }];
  const texts = list(fields).map(text);
  const valueOf = (name: string) => texts[texts.findIndex((field, i) => i % 2 === 0 && field === name) + 1] ?? "";
  return [{ key, id: text(id), tenant: valueOf("t"), type: valueOf("e"), facts: valueOf("d") }];
}
