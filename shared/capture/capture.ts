/**
 * Publishes records from the log, so that JetStream has them and readers at NATS do. Whoever
 * publishes a request's records begins no later than one past what JetStream has, and goes on
 * without a gap. So however many do so at once, no reader ever meets an index above the next one:
 * what comes is the next record, or one that came before.
 */
import type { Bus } from "../nats/connect.js";
import type { RequestAddress } from "../queue/address.js";
import { logKey, tokenSubject } from "../queue/keys.js";
import type { RedisClient } from "../redis/connect.js";
import { lastCaptured, recordId, TOKEN_STREAM } from "./captured.js";

/** Records that are read from the log and published at a time. */
const PAGE = 128;
const LOOK = Buffer.alloc(0);

/** The message of a record: itself, or nothing where it is larger than a message may be. */
export function messageOf(bus: Bus, record: Buffer | string): Buffer {
  const message = typeof record === "string" ? Buffer.from(record) : record;
  return message.length <= bus.maxBytes() - ID_ROOM_BYTES ? message : LOOK;
}

/** Room for the header with a message's id. */
const ID_ROOM_BYTES = 256;

/**
 * Publishes what the log has and JetStream does not, until JetStream has all of it.
 * @returns the index that the next record of the log will have
 * @throws Error while JetStream or Redis cannot be asked
 */
export async function capture(
  { redis, bus }: { readonly redis: RedisClient; readonly bus: Bus },
  address: RequestAddress,
): Promise<number> {
  const subject = tokenSubject(address);
  let next = ((await lastCaptured(bus, address))?.index ?? -1) + 1;
  for (;;) {
    const records = await redis.lrange(logKey(address), next, next + PAGE - 1);
    const last = records.pop();
    if (last === undefined) return next;
    // All of these leave over one connection, so JetStream has them when it has the last.
    for (const record of records) bus.publish(subject, messageOf(bus, record), recordId(address, next++));
    await bus.store(TOKEN_STREAM, subject, messageOf(bus, last), recordId(address, next));
    next++;
  }
}

/**
 * Publishes records of the log to those who listen now.
 * @param from an index, or how many before the end, as a negative number
 * @returns how many there were
 */
export async function publishAgain(
  { redis, bus }: { readonly redis: RedisClient; readonly bus: Bus },
  address: RequestAddress,
  from: number,
): Promise<number> {
  const records = await redis.lrange(logKey(address), from, -1);
  for (const record of records) bus.publish(tokenSubject(address), messageOf(bus, record));
  return records.length;
}
