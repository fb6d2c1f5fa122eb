/**
 * Finds entries that were delivered once and now belong to nobody. Only outside interference makes
 * one.
 */
import { bytes, list, text } from "../../redis/script.js";
import { decodeEntry, type Delivery } from "../entry.js";
import { GROUP, laneKeys } from "../keys.js";
import { isUpTo } from "./entry-order.js";
import { groupState, type GroupState } from "./group-state.js";
import type { LaneQueue } from "./lane.js";

/**
 * Entries that were delivered once, are pending with nobody, and are still in the stream. The two
 * lists are read one after the other, so some of what looks orphaned was only just settled.
 * @param limit the most entries that are looked at
 */
export async function orphans(queue: LaneQueue, limit: number): Promise<Delivery[]> {
  const { redis, lane } = queue;
  const { ready } = laneKeys(lane);
  const state = await groupState(queue);
  if (state === undefined || isSound(state)) return [];
  const { last } = state;
  const present = list(await redis.callBuffer("XRANGE", ready, "-", last, "COUNT", limit));
  const owned = list(await redis.callBuffer("XPENDING", ready, GROUP, "-", last, limit));
  const pendingIds = new Set(owned.map((row) => text(list(row)[0])));
  return present.flatMap((item) => {
    const [id, fields] = list(item);
    const delivery = decodeEntry(lane, bytes(id), list(fields).map(bytes));
    return delivery === undefined || pendingIds.has(delivery.entry) ? [] : [delivery];
  });
}

/**
 * Where everything was delivered, everything is pending, or some of it is lost. Where more is to be
 * delivered, the oldest entry tells: one that is lost behind others becomes the oldest in time.
 */
function isSound({ length, oldest, newest, pending, oldestPending, last }: GroupState): boolean {
  if (isUpTo(newest, last)) return length === pending;
  return !isUpTo(oldest, last) || (oldestPending !== "" && isUpTo(oldestPending, oldest));
}
