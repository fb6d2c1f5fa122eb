/** The typed wrapper of count-lanes.lua: what lanes hold. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list } from "../../redis/script.js";
import { callGroups } from "../../redis/slots.js";
import type { Lane } from "../address.js";
import { GROUP, laneKeys } from "../keys.js";

export interface LaneCounts {
  readonly queued: number;
  readonly running: number;
  /** Live sequences, with those that have expired and not been removed yet. */
  readonly live: number;
  /** Requests set aside, of all versions of the model. */
  readonly dead: number;
}

const script = defineScript(
  new URL("./count-lanes.lua", import.meta.url),
  (reply): LaneCounts[] =>
    list(reply).map((counts) => {
      const [queued = 0, running = 0, live = 0, dead = 0] = list(counts).map(integer);
      return { queued, running, live, dead };
    }),
  { keys: [{ lanes: ["ready", "parked", "live", "dead"] }], args: ["group"], readsOnly: true },
);

/** Lanes of a call: each takes Redis some µs, in which it answers no other client. */
const TOGETHER = 160;

/**
 * @returns the counts of each lane, in the order of `lanes`
 * @throws the client's error if Redis does not answer
 */
export async function countLanes(redis: RedisClient, lanes: readonly Lane[]): Promise<ReadonlyMap<Lane, LaneCounts>> {
  const calls = callGroups(redis, lanes, (lane) => laneKeys(lane).ready).flatMap((group) =>
    Array.from({ length: Math.ceil(group.length / TOGETHER) }, (_, i) => group.slice(i * TOGETHER, (i + 1) * TOGETHER)),
  );
  const counted = await Promise.all(
    calls.map(async (some) => {
      const counts = await script(redis, { lanes: some.map(laneKeys) }, { group: GROUP });
      return some.flatMap((lane, i) => (counts[i] === undefined ? [] : [[lane, counts[i]] as const]));
    }),
  );
  return new Map(counted.flat());
}
