/** The typed wrapper of reclaim.lua. */
import { GROUP, laneKeys } from "#shared/keys.js";
import { defineScript, list, text } from "#shared/redis/script.js";
import type { LaneQueue } from "./lane.js";
import { entries, type Taken } from "./stream.js";

export interface Reclaimed extends Taken {
  /** For the next call; `0-0` when all have been seen. */
  readonly cursor: string;
  /** Ids of entries that were deleted while somebody owned them. */
  readonly deleted: string[];
}

const script = defineScript<Reclaimed>(new URL("./reclaim.lua", import.meta.url), (reply) => {
  const [cursor, found, deleted] = list(reply);
  return { cursor: text(cursor), deleted: list(deleted).map(text), ...entries(list(found)) };
});

/** @param notAfter Redis time in ms: a call that arrives later takes nothing. */
export function reclaim(
  { redis, lane, consumer }: LaneQueue,
  leaseMs: number,
  count: number,
  cursor: string,
  notAfter = Number.MAX_SAFE_INTEGER,
): Promise<Reclaimed> {
  return script(redis, [laneKeys(lane).ready], [GROUP, consumer, leaseMs, cursor, count, notAfter]);
}
