/** The plain stream commands of a lane, their replies decoded, and the group that they need. */
import { decodeEntry, type Delivery } from "#shared/contract/entry.js";
import { GROUP, laneKeys, type Lane } from "#shared/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { bytes, defineScript, isReplyError, list, text, word } from "#shared/redis/script.js";
import type { LaneQueue } from "./lane.js";

const createGroup = defineScript(new URL("./create-group.lua", import.meta.url), (reply) =>
  word(reply, ["created", "exists"]),
);

export interface Taken {
  readonly deliveries: Delivery[];
  /** Ids of entries whose fields are gone or are not ours. */
  readonly unreadable: string[];
}

/** Asks first, and makes the lane's group only where there is none: a full Redis refuses writes. */
export async function ensureGroup(redis: RedisClient, lane: Lane): Promise<void> {
  const { ready } = laneKeys(lane);
  try {
    await redis.call("XPENDING", ready, GROUP, "-", "+", 1);
  } catch (error) {
    if (!isReplyError(error, "NOGROUP")) throw error;
    await createGroup(redis, [ready], [GROUP]);
  }
}

/** New entries, waiting up to `blockMs` for the first. `redis` must be a connection for blocking reads alone. */
export async function readNew(queue: LaneQueue, count: number, blockMs: number): Promise<Taken> {
  const { ready } = laneKeys(queue.lane);
  return taken(
    await queue.redis.callBuffer(
      "XREADGROUP",
      "GROUP",
      GROUP,
      queue.consumer,
      "COUNT",
      count,
      "BLOCK",
      blockMs,
      "STREAMS",
      ready,
      ">",
    ),
  );
}

/** What this consumer already owns: after a lost reply, entries may be ours without our having seen them. */
export async function readOwned(queue: LaneQueue, count: number): Promise<Taken> {
  const { ready } = laneKeys(queue.lane);
  return taken(
    await queue.redis.callBuffer("XREADGROUP", "GROUP", GROUP, queue.consumer, "COUNT", count, "STREAMS", ready, "0"),
  );
}

function taken(reply: unknown): Taken {
  if (reply === null) return { deliveries: [], unreadable: [] };
  return entries(list(list(list(reply)[0])[1]));
}

export function entries(items: readonly unknown[]): Taken {
  const deliveries: Delivery[] = [];
  const unreadable: string[] = [];
  for (const item of items) {
    if (item === null) continue; // XAUTOCLAIM may leave holes for deleted entries
    const [id, fields] = list(item);
    const delivery = decodeEntry(bytes(id), fields === null ? null : list(fields).map(bytes));
    if (delivery === undefined) unreadable.push(text(id));
    else deliveries.push(delivery);
  }
  return { deliveries, unreadable };
}
