/** The typed wrapper of renew.lua. */
import { GROUP, laneKeys } from "#shared/keys.js";
import { defineScript, integer, list, text } from "#shared/redis/script.js";
import type { LaneQueue } from "./lane.js";

export interface Renewal {
  /** Redis time in ms: the only clock that deadlines are read on. */
  readonly redisNow: number;
  /** Entries that this worker no longer owns. */
  readonly lost: string[];
}

const script = defineScript<Renewal>(new URL("./renew.lua", import.meta.url), (reply) => {
  const [redisNow, ...lost] = list(reply);
  return { redisNow: integer(redisNow), lost: lost.map(text) };
});

export function renew({ redis, lane, consumer }: LaneQueue, entries: readonly string[]): Promise<Renewal> {
  return script(redis, [laneKeys(lane).ready], [GROUP, consumer, ...entries]);
}
