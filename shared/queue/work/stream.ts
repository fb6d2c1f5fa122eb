/** Reads entries of lanes for this worker: stream commands, with decoded replies. */
import type { Lane } from "../address.js";
import { decodeEntry, type Delivery } from "../entry.js";
import { GROUP, laneKeys } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { bytes, list, text } from "../../redis/script.js";
import type { Located } from "./lane.js";

export interface Taken {
  readonly deliveries: Delivery[];
  /** Entries whose fields are gone or do not parse. */
  readonly unreadable: Located[];
}

/** Lanes by the keys of their ready streams. In a Redis Cluster, all are of the same bucket. */
export type LanesByKey = ReadonlyMap<string, Lane>;

export function lanesByKey(lanes: Iterable<Lane>): LanesByKey {
  return new Map([...lanes].map((lane) => [laneKeys(lane).ready, lane]));
}

/**
 * Waits until a lane has new entries, and takes them from all lanes that have some by then.
 * @param redis a connection for blocking reads alone
 * @param count the most entries of each lane
 * @param blockMs the longest wait
 */
export async function waitForNew(
  redis: RedisClient,
  consumer: string,
  lanes: LanesByKey,
  count: number,
  blockMs: number,
): Promise<Taken> {
  const streams = [...lanes.keys(), ...Array<string>(lanes.size).fill(">")];
  const options = ["COUNT", count, "BLOCK", blockMs, "STREAMS", ...streams];
  return ofStreams(lanes, await redis.callBuffer("XREADGROUP", "GROUP", GROUP, consumer, ...options));
}

/**
 * Reads the entries that this consumer already owns: after a lost reply, it may own entries that it
 * has not seen.
 * @param count the most entries of each lane
 */
export async function readOwned(
  redis: RedisClient,
  consumer: string,
  lanes: LanesByKey,
  count: number,
): Promise<Taken> {
  const streams = [...lanes.keys(), ...Array<string>(lanes.size).fill("0")];
  const options = ["COUNT", count, "STREAMS", ...streams];
  return ofStreams(lanes, await redis.callBuffer("XREADGROUP", "GROUP", GROUP, consumer, ...options));
}

/** Decodes `[[key, entries], ...]`, the reply of XREADGROUP; null means no entries. */
export function ofStreams(lanes: LanesByKey, reply: unknown): Taken {
  const taken: Taken = { deliveries: [], unreadable: [] };
  if (reply === null) return taken;
  for (const one of list(reply)) {
    const [key, items] = list(one);
    const lane = lanes.get(text(key));
    if (lane === undefined) throw new TypeError("a stream was read that was not asked for");
    const { deliveries, unreadable } = entries(lane, list(items));
    taken.deliveries.push(...deliveries);
    taken.unreadable.push(...unreadable);
  }
  return taken;
}

/** Decodes entries of a lane from the reply of a stream command. */
export function entries(lane: Lane, items: readonly unknown[]): Taken {
  const deliveries: Delivery[] = [];
  const unreadable: Located[] = [];
  for (const item of items) {
    if (item === null) continue; // a claim may give null for a deleted entry
    const [id, fields] = list(item);
    const delivery = decodeEntry(lane, bytes(id), fields === null ? null : list(fields).map(bytes));
    if (delivery === undefined) unreadable.push({ lane, entry: text(id) });
    else deliveries.push(delivery);
  }
  return { deliveries, unreadable };
}
