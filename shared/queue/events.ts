/**
 * The outbox: what has happened, as scripts note it (events.lua), and how the jobs process takes
 * it. Replicas share a consumer group, so each entry goes to one of them. An entry stays until it
 * is acknowledged, and what a dead replica had is taken over.
 */
import type { BlockingReader, RedisClient } from "../redis/connect.js";
import { isReplyError, list, text } from "../redis/script.js";
import { jobEventTypes } from "./job-events.js";
import { eventsKey } from "./keys.js";
import { reapConsumers } from "./reap-consumers.js";

/** What webhooks can be told of. */
export const eventTypes = [
  ...jobEventTypes,
  "sequence.expired",
  "batch.completed",
  "batch.failed",
  "batch.cancelled",
  "batch.expired",
] as const;
export type EventType = (typeof eventTypes)[number];

/** That somebody asks for a delivery once more: no event, but it takes the same way. */
export const REPLAY = "replay";

/** That a schedule was made or goes on: no event either. */
export const SCHEDULED = "schedule";

export interface OutboxEntry {
  readonly key: string;
  /** Of the stream: Redis's time in ms, and a count. */
  readonly id: string;
  readonly tenant: string;
  readonly type: string;
  /** As JSON. */
  readonly facts: string;
}

const GROUP = "jobs";
/** Entries that one read brings. */
const COUNT = 64;
const FIRST = "0-0";

/** Waits up to `blockMs` for entries that nobody has had. */
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

/** A part of what was taken over, and where the next part begins. */
export interface TakenOver {
  readonly entries: readonly OutboxEntry[];
  /** Undefined after the last part. */
  readonly next: string | undefined;
}

/**
 * Takes over what others have had for longer than `idleMs`, and what this one has left lying.
 * @param from where this part begins
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
 * What is acknowledged is kept no longer. It is deleted first: what is deleted and still pending
 * is cleared away by who takes it over, but nobody would find what is only acknowledged.
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

/** Removes consumers that have nothing and have not read for `idleMs`: each start makes one. */
export async function removeIdleConsumers(redis: RedisClient, key: string, idleMs: number): Promise<void> {
  await reapConsumers(redis, key, GROUP, idleMs);
}

/** Asks for a delivery once more. */
export async function askForReplay(redis: RedisClient, tenant: string, message: string): Promise<void> {
  await redis.xadd(eventsKey(0), "*", "t", tenant, "e", REPLAY, "d", JSON.stringify({ message }));
}

/** Tells a jobs process of a schedule that is due from now on. */
export async function announceSchedule(redis: RedisClient, tenant: string, id: string): Promise<void> {
  await redis.xadd(eventsKey(0), "*", "t", tenant, "e", SCHEDULED, "d", JSON.stringify({ id }));
}

/** An entry whose fields were deleted, or that has others, tells nothing. */
function decode(key: string, entry: unknown): OutboxEntry[] {
  const [id, fields] = list(entry);
  if (!Array.isArray(fields)) return [{ key, id: text(id), tenant: "", type: "", facts: "{}" }];
  const texts = list(fields).map(text);
  const valueOf = (name: string) => texts[texts.findIndex((field, i) => i % 2 === 0 && field === name) + 1] ?? "";
  return [{ key, id: text(id), tenant: valueOf("t"), type: valueOf("e"), facts: valueOf("d") }];
}
