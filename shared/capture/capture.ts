/**
 * Publishes records of the log to JetStream and to readers at NATS. Each publisher of a request
 * starts at most one record after the newest record in JetStream, and leaves no gap. So a reader
 * never receives an index above the next, with any number of publishers: each message is the next
 * record or an earlier record.
 */
import type { Bus } from "../nats/connect.js";
import { countPublished } from "../nats/published.js";
import type { RequestAddress } from "../queue/address.js";
import type { LastRecord } from "../queue/ends/cancel.js";
import { logKey } from "../queue/keys.js";
import type { RedisClient } from "../redis/connect.js";
import { feedsOf, lastCaptured, recordId, TOKEN_STREAM, type Feed } from "./captured.js";

/** The most messages to read from the log and publish at a time. */
const PAGE = 128;
const LOOK = Buffer.alloc(0);

/**
 * The message of a record: the record, or an empty message if the record exceeds NATS's limit.
 * After an empty message, readers read the log in Redis.
 */
export function messageOf(bus: Bus, record: Buffer | string): Buffer {
  const message = typeof record === "string" ? Buffer.from(record) : record;
  return message.length <= bus.maxBytes() - ID_ROOM_BYTES ? message : LOOK;
}

/** Room for the header that carries a message's id. */
const ID_ROOM_BYTES = 256;

interface Parts {
  readonly redis: RedisClient;
  readonly bus: Bus;
}

/**
 * Publishes the records that JetStream lacks, up to the log's end, on each of the request's
 * subjects.
 * @param labels the job's labels as tokens
 * @returns the index that the next record of the log will have
 * @throws Error while JetStream or Redis does not answer
 */
export async function capture(
  { redis, bus }: Parts,
  address: RequestAddress,
  labels: readonly string[],
): Promise<number> {
  const feeds: { readonly feed: Feed; readonly next: number }[] = [];
  // One subject at a time, because a worker captures all of its streams at once, and other workers
  // do the same.
  for (const feed of feedsOf(address, labels)) {
    feeds.push({ feed, next: ((await lastCaptured(bus, feed))?.index ?? -1) + 1 });
  }
  // All subjects share the limit on messages under way.
  const page = Math.ceil(PAGE / feeds.length);
  let next = Math.min(...feeds.map((one) => one.next));
  for (;;) {
    const records = await redis.lrange(logKey(address), next, next + page - 1);
    const last = records.pop();
    if (last === undefined) return next;
    for (const record of records) {
      const message = messageOf(bus, record);
      for (const { feed } of feeds.filter((one) => one.next <= next)) publishCaptured(bus, feed, message, next);
      next++;
    }
    // One connection carries the page in order, so JetStream has the whole page after the last
    // message.
    const message = messageOf(bus, last);
    const behind = feeds.filter((one) => one.next <= next);
    await Promise.all(behind.map(({ feed }) => storeCaptured(bus, feed, message, next)));
    next++;
  }
}

/**
 * Publishes records of the log to readers that are subscribed now.
 * @param labels the job's labels as tokens
 * @param from an index, or a negative number that counts from the end
 * @returns the number of records
 */
export async function publishAgain(
  { redis, bus }: Parts,
  address: RequestAddress,
  labels: readonly string[],
  from: number,
): Promise<number> {
  const feeds = feedsOf(address, labels);
  const records = await redis.lrange(logKey(address), from, -1);
  for (const record of records) publishOn(bus, feeds, messageOf(bus, record));
  return records.length;
}

/** Publishes a record for JetStream, without waiting until it is stored. */
export function publishCaptured(bus: Bus, feed: Feed, message: Buffer, index: number): void {
  countPublished("record", message.length);
  bus.publish(feed.subject, message, recordId(feed, index));
}

/** Resolves when JetStream has stored a record. */
export async function storeCaptured(bus: Bus, feed: Feed, message: Buffer, index: number): Promise<void> {
  countPublished("record", message.length);
  await bus.store(TOKEN_STREAM, feed.subject, message, recordId(feed, index));
}

/** Publishes a record to readers that are subscribed now. */
export function publishOn(bus: Bus, feeds: readonly Feed[], message: Buffer): void {
  countPublished("record", message.length, feeds.length);
  for (const { subject } of feeds) bus.publish(subject, message);
}

/**
 * Publishes the final record of a request that ended outside its worker. If the deployment captures
 * records, first publishes the records before the final record, because the worker may not have
 * published them yet.
 */
export async function publishEnd(parts: Parts, address: RequestAddress, { record, labels }: LastRecord): Promise<void> {
  const { bus } = parts;
  try {
    if (bus.captures && bus.isUp()) return void (await capture(parts, address, labels));
  } catch {
    // The request's worker, or a gateway that opens a subscription, captures the record later.
  }
  publishOn(bus, feedsOf(address, labels), record);
}
