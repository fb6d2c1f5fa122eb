/** What every queue operation of a worker needs: the lane, this worker's name in its group, and a connection. */
import type { Delivery } from "#shared/contract/entry.js";
import { outcomeKey, sequenceKeys, type Lane } from "#shared/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";

export interface LaneQueue {
  readonly redis: RedisClient;
  readonly lane: Lane;
  /** Unique per process start, so that a restarted worker can never pass as its former self. */
  readonly consumer: string;
  /** Its requests are streams: each has a log beside its outcome. */
  readonly streams?: boolean;
}

/** The queue of a generator's lane. */
export interface StreamQueue extends LaneQueue {
  readonly streams: true;
}

/** The hash whose `entry` says where the request stands in the queue. */
export function ownerKey(lane: Lane, { sequence, request }: Delivery): string {
  return sequence === undefined ? outcomeKey(lane, request) : sequenceKeys(lane, sequence).seq;
}

/** Dead letters kept per lane; operators see the newest. */
export const DEAD_LIMIT = 10_000;
