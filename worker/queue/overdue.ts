/** The typed wrapper of overdue.lua. */
import { GROUP, laneKeys, watcherKey } from "#shared/keys.js";
import { defineScript, list, text } from "#shared/redis/script.js";
import type { LaneQueue } from "./lane.js";

const script = defineScript(new URL("./overdue.lua", import.meta.url), (reply) => list(reply).map(text));

export interface OverdueLimits {
  /** Longer than a living worker lets pass between two renewals. */
  readonly idleMs: number;
  readonly leaseMs: number;
  /** Nobody else of the lane is told for so long. */
  readonly holdMs: number;
}

/** @returns the other workers that are late with their renewals; nobody, where another worker is being told. */
export function overdue({ redis, lane, consumer }: LaneQueue, limits: OverdueLimits): Promise<readonly string[]> {
  const { idleMs, leaseMs, holdMs } = limits;
  const { ready } = laneKeys(lane);
  return script(redis, [ready, watcherKey(lane)], [GROUP, consumer, Math.ceil(idleMs), leaseMs, holdMs]);
}
