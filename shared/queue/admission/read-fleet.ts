/** The typed wrapper of read-fleet.lua: whether the fleet has changed. */
import { registryKeys } from "../keys.js";
import { times, type Times } from "../members.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text } from "../../redis/script.js";

export interface FleetState {
  readonly redisNow: number;
  /** Changes whenever a worker joins, leaves, or is declared dead. */
  readonly version: string;
  /** Workers that no longer count as living, and until when each did. */
  readonly late: Times;
}

const script = defineScript(
  new URL("./read-fleet.lua", import.meta.url),
  (reply): FleetState => {
    const [now, version, late] = list(reply);
    return { redisNow: integer(now), version: text(version), late: times(list(late).map(text)) };
  },
  { keys: ["workers", "version"], args: [], readsOnly: true },
);

export function readFleet(redis: RedisClient): Promise<FleetState> {
  const { workers, version } = registryKeys;
  return script(redis, { workers, version }, {});
}

/** @returns the version alone, by a plain command: '' if there is none */
export async function readVersion(redis: RedisClient): Promise<string> {
  return (await redis.get(registryKeys.version)) ?? "";
}
