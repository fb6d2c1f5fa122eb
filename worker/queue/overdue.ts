/** The typed wrapper of overdue.lua. */
import { GROUP, laneKeys } from "#shared/keys.js";
import { defineScript, integer, list, text } from "#shared/redis/script.js";
import type { LaneQueue } from "./lane.js";

export interface Overdue {
  /** Of the lane, heard of within a lease, this one included; 0 when nobody asked. */
  readonly workers: number;
  /** The others that hold entries and have been silent. */
  readonly silent: readonly string[];
}

export interface OverdueLimits {
  /** Longer than a living worker is silent. */
  readonly silentMs: number;
  readonly leaseMs: number;
}

const script = defineScript(new URL("./overdue.lua", import.meta.url), (reply): Overdue => {
  const [workers, ...silent] = list(reply);
  return { workers: integer(workers), silent: silent.map(text) };
});

/** Tells that this worker lives. @param ask who is silent; without it nobody is named */
export function overdue({ redis, lane, consumer }: LaneQueue, ask: boolean, limits: OverdueLimits): Promise<Overdue> {
  const { silentMs, leaseMs } = limits;
  return script(redis, [laneKeys(lane).ready], [GROUP, consumer, ask ? 1 : 0, silentMs, leaseMs]);
}
