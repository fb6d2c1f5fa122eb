/**
 * Finds the pending entries of a worker lane by lane: before another process declares the worker
 * dead, when the worker comes back, and when it leaves. The cost depends on the number of entries
 * that the worker holds, not on the size of the lanes.
 */
import { GROUP, laneKeys } from "../../keys.js";
import type { Lane } from "../../address.js";
import type { RedisClient } from "../../../redis/connect.js";
import { isTransient } from "../../../retry.js";
import { isReplyError, list, text } from "../../../redis/script.js";
import type { LaneQueue } from "../lane.js";

/** The most entries that a look into a lane counts; a worker rarely holds more. */
const MOST = 1_000;

/** A lane in which a worker has pending entries. */
export interface OwnedInLane {
  readonly lane: Lane;
  /** How many, up to a thousand; 0 if Redis did not answer. */
  readonly entries: number;
}

/**
 * In a Cluster, lanes on a master that does not answer count as lanes with entries. The entries in
 * other lanes must not wait for this master, and a grave without entries closes at the first look.
 * @returns the lanes in which the worker has pending entries, or may have some
 */
export async function ownedByLane(redis: RedisClient, worker: string, lanes: readonly Lane[]): Promise<OwnedInLane[]> {
  // The commands go out together. They are no transaction, because the lanes lie in several
  // buckets.
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

/** @returns the ids of up to a thousand pending entries of this worker */
export async function ownedEntries({ redis, lane, consumer }: LaneQueue): Promise<string[]> {
  try {
    const rows = await redis.call("XPENDING", laneKeys(lane).ready, GROUP, "-", "+", MOST, consumer);
    return list(rows).map((row) => text(list(row)[0]));
  } catch (error) {
    // No worker has read there yet, or Redis came back empty.
    if (isReplyError(error, "NOGROUP")) return [];
    throw error;
  }
}
