/**
 * Publishes records from the log, so that JetStream has them and readers at NATS do. Whoever
 * publishes a request's records begins no later than one past what JetStream has, and goes on
 * without a gap. So however many do so at once, no reader ever meets an index above the next one:
 * what comes is the next record, or one that came before.
 */
import type { Bus } from "../nats/connect.js";
import type { RequestAddress } from "../queue/address.js";
import type { LastRecord } from "../queue/cancel.js";
import { logKey } from "../queue/keys.js";
import type { RedisClient } from "../redis/connect.js";
import { feedsOf, lastCaptured, recordId, TOKEN_STREAM, type Feed } from "./captured.js";

/** Messages that are made of the log and published at a time. */
const PAGE = 128;
const LOOK = Buffer.alloc(0);

/** The message of a record: itself, or nothing where it is larger than a message may be. */
export function messageOf(bus: Bus, record: Buffer | string): Buffer {
  const message = typeof record === "string" ? Buffer.from(record) : record;
  return message.length <= bus.maxBytes() - ID_ROOM_BYTES ? message : LOOK;
}

/** Room for the header with a message's id. */
const ID_ROOM_BYTES = 256;

interface Parts {
  readonly redis: RedisClient;
  readonly bus: Bus;
}

/**
 * Publishes what the log has and JetStream does not, until JetStream has all of it, on each of the
 * request's subjects.
 * @param labels of the job that the request runs, as tokens
 * @returns the index that the next record of the log will have
 * @throws Error while JetStream or Redis cannot be asked
 */
export async function capture(
  { redis, bus }: Parts,
  address: RequestAddress,
  labels: readonly string[],
): Promise<number> {
  const feeds: { readonly feed: Feed; readonly next: number }[] = [];
  // One after the other: a worker asks for all of its streams at a time, and other workers do, too.
  for (const feed of feedsOf(address, labels)) {
    feeds.push({ feed, next: ((await lastCaptured(bus, feed))?.index ?? -1) + 1 });
  }
  // So many messages are under way at most, however many subjects share them.
  const page = Math.ceil(PAGE / feeds.length);
  let next = Math.min(...feeds.map((one) => one.next));
  for (;;) {
    const records = await redis.lrange(logKey(address), next, next + page - 1);
    const last = records.pop();
    if (last === undefined) return next;
    for (const record of records) {
      const message = messageOf(bus, record);
      for (const { feed } of feeds.filter((one) => one.next <= next)) {
        bus.publish(feed.subject, message, recordId(feed, next));
      }
      next++;
    }
    // All of these leave over one connection, so JetStream has them when it has the last.
    const message = messageOf(bus, last);
    const behind = feeds.filter((one) => one.next <= next);
    await Promise.all(behind.map(({ feed }) => bus.store(TOKEN_STREAM, feed.subject, message, recordId(feed, next))));
    next++;
  }
}

/**
 * Publishes records of the log to those who listen now.
 * @param labels of the job that the request runs, as tokens
 * @param from an index, or how many before the end, as a negative number
 * @returns how many there were
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

/** Publishes a record to those who listen now. */
export function publishOn(bus: Bus, feeds: readonly Feed[], message: Buffer): void {
  for (const { subject } of feeds) bus.publish(subject, message);
}

/**
 * Publishes the final record of a request that was ended from outside of its worker. Where records
 * are captured, those before the last must come before it, and its worker may just be about to
 * publish them.
 */
export async function publishEnd(parts: Parts, address: RequestAddress, { record, labels }: LastRecord): Promise<void> {
  const { bus } = parts;
  try {
    if (bus.captures && bus.isUp()) return void (await capture(parts, address, labels));
  } catch {
    // The worker that has the request, or a gateway that is asked for a subscription, captures it
    // later.
  }
  publishOn(bus, feedsOf(address, labels), record);
}
