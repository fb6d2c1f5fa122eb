/** The typed wrapper of discard.lua. */
import { GROUP, laneKeys } from "#shared/keys.js";
import { defineScript, integer } from "#shared/redis/script.js";
import { DEAD_LIMIT, type LaneQueue } from "./lane.js";

const script = defineScript(new URL("./discard.lua", import.meta.url), integer);

export function discard({ redis, lane, consumer }: LaneQueue, entries: readonly string[]): Promise<number> {
  const { ready, dead } = laneKeys(lane);
  return script(redis, [ready, dead], [GROUP, consumer, DEAD_LIMIT, ...entries]);
}
