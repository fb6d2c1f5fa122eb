/**
 * What a worker has pending, found lane by lane: before it is declared dead, when it comes back,
 * and when it leaves. What that costs goes by what the worker holds, not by what the lanes hold.
 */
import { GROUP, laneKeys } from "../keys.js";
import type { Lane } from "../address.js";
import type { RedisClient } from "../../redis/connect.js";
import { isTransient } from "../../retry.js";
import { isReplyError, list, text } from "../../redis/script.js";
import type { LaneQueue } from "./lane.js";

/** Entries that one look into a lane counts; a worker rarely holds more. */
const MOST = 1_000;

/** A lane in which a worker has pending entries. */
export interface OwnedInLane {
  readonly lane: Lane;
  /** How many, up to a thousand; 0 where Redis could not be asked. */
  readonly entries: number;
}

/**
 * In a Cluster, the lanes of a master that cannot be asked now count as lanes with entries: what
 * lies in the others must not wait for it, and a grave without entries is closed at the first look.
 * @returns the lanes in which the worker has pending entries, or may have some
 */
export async function ownedByLane(redis: RedisClient, worker: string, lanes: readonly Lane[]): Promise<OwnedInLane[]> {
  // They are sent together. The lanes lie in several buckets, so they are no transaction.
  const found = await Promise.all(
    lanes.map(async (lane) => {
      try {
        return { lane, entries: (await ownedEntries({ redis, lane, consumer: worker })).length, asked: true };
      } catch (error) {
        if (!redis.isCluster || !isTransient(error)) throw error;
        return { lane, entries: 0, asked: false };
      }
    }),
  );
  return found.filter(({ entries, asked }) => entries > 0 || !asked);
}

/** @returns the ids of up to a thousand entries that are pending with this worker */
export async function ownedEntries({ redis, lane, consumer }: LaneQueue): Promise<string[]> {
  try {
    const rows = await redis.call("XPENDING", laneKeys(lane).ready, GROUP, "-", "+", MOST, consumer);
    return list(rows).map((row) => text(list(row)[0]));
  } catch (error) {
    // Nobody has read there yet, or Redis came back empty.
    if (isReplyError(error, "NOGROUP")) return [];
    throw error;
  }
}
