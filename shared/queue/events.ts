/**
 * The outbox: what has happened, as scripts note it (events.lua), and how the jobs process takes
 * it. Replicas share a consumer group, so each entry goes to one of them. An entry stays until it
 * is acknowledged, and what a dead replica had is taken over.
 */
import type { BlockingReader, RedisClient } from "../redis/connect.js";
import { integer, isReplyError, list, text } from "../redis/script.js";
import { eventsKey } from "./keys.js";

/** What webhooks can be told of. */
export const eventTypes = ["sequence.expired"] as const;
export type EventType = (typeof eventTypes)[number];

/** That somebody asks for a delivery once more: no event, but it takes the same way. */
export const REPLAY = "replay";

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

/** Takes over what others have had for longer than `idleMs`, and what this one has left lying. */
export async function takeOverEvents(
  redis: RedisClient,
  key: string,
  consumer: string,
  idleMs: number,
): Promise<OutboxEntry[]> {
  const reply = await redis.callBuffer("XAUTOCLAIM", [key, GROUP, consumer, idleMs, "0-0", "COUNT", COUNT]);
  const [, entries] = list(reply);
  return list(entries).flatMap((entry) => decode(key, entry));
}

/** What is acknowledged is kept no longer. */
export async function acknowledgeEvent(redis: RedisClient, { key, id }: OutboxEntry): Promise<void> {
  await redis.xack(key, GROUP, id);
  await redis.xdel(key, id);
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
  for (const one of list(await redis.call("XINFO", "CONSUMERS", key, GROUP))) {
    const fields = list(one);
    const valueOf = (name: string) => fields[fields.findIndex((field) => field === name) + 1];
    if (integer(valueOf("pending")) > 0 || integer(valueOf("idle")) < idleMs) continue;
    await redis.xgroup("DELCONSUMER", key, GROUP, text(valueOf("name")));
  }
}

/** Asks for a delivery once more. */
export async function askForReplay(redis: RedisClient, tenant: string, message: string): Promise<void> {
  await redis.xadd(eventsKey(0), "*", "t", tenant, "e", REPLAY, "d", JSON.stringify({ message }));
}

/** An entry whose fields were deleted, or that has others, tells nothing. */
function decode(key: string, entry: unknown): OutboxEntry[] {
  const [id, fields] = list(entry);
  if (!Array.isArray(fields)) return [{ key, id: text(id), tenant: "", type: "", facts: "{}" }];
  const texts = list(fields).map(text);
  const valueOf = (name: string) => texts[texts.findIndex((field, i) => i % 2 === 0 && field === name) + 1] ?? "";
  return [{ key, id: text(id), tenant: valueOf("t"), type: valueOf("e"), facts: valueOf("d") }];
}
