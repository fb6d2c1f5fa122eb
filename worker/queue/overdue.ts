/** The typed wrapper of overdue.lua. */
import { GROUP, laneKeys, watcherKey } from "#shared/keys.js";
import { defineScript, list, text } from "#shared/redis/script.js";
import type { LaneQueue } from "./lane.js";

const script = defineScript(new URL("./overdue.lua", import.meta.url), (reply) => list(reply).map(text));

export interface OverdueLimits {
  /** Longer than a living worker is silent. */
  readonly silentMs: number;
  readonly leaseMs: number;
  /** Nobody else of the lane is told for so long. */
  readonly holdMs: number;
}

/** Tells that this worker lives. @returns the others that hold entries and have been silent; nobody, where another worker is being told */
export function overdue({ redis, lane, consumer }: LaneQueue, limits: OverdueLimits): Promise<readonly string[]> {
  const { silentMs, leaseMs, holdMs } = limits;
  return script(redis, [laneKeys(lane).ready, watcherKey(lane)], [GROUP, consumer, silentMs, leaseMs, holdMs]);
}
