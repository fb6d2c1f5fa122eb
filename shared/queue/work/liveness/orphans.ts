/**
 * Finds orphans: entries that Redis delivered once and that belong to no worker now. Only outside
 * interference makes an orphan.
 */
import { bytes, list, text } from "../../../redis/script.js";
import { decodeEntry, type Delivery } from "../../entry.js";
import { GROUP, laneKeys } from "../../keys.js";
import { isUpTo } from "../entry-order.js";
import { groupState, type GroupState } from "../read/group-state.js";
import type { LaneQueue } from "../lane.js";

/**
 * Entries that Redis delivered once, that are pending with no worker, and that are still in the
 * stream. The two lists come from two commands, so a worker may have just settled an entry that
 * looks orphaned.
 * @param limit the most entries to look at
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
 * If Redis has delivered every entry, every entry is pending, or some entries are lost. Otherwise
 * the oldest entry shows a loss: a lost entry behind others becomes the oldest in time.
 */
function isSound({ length, oldest, newest, pending, oldestPending, last }: GroupState): boolean {
  if (isUpTo(newest, last)) return length === pending;
  return !isUpTo(oldest, last) || (oldestPending !== "" && isUpTo(oldestPending, oldest));
}
