/** The typed wrapper of read-fleet.lua: whether the fleet has changed. */
import { registryKeys } from "../keys.js";
import { verbosityIn } from "../log-setting.js";
import { times, type Times } from "../members.js";
import { fieldsOf, type TraceFields } from "../trace-settings.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text } from "../../redis/script.js";

export interface FleetState {
  readonly redisNow: number;
  /** Changes whenever a worker joins, leaves, or is declared dead. */
  readonly version: string;
  /** Workers that no longer count as living, and until when each did. */
  readonly late: Times;
  /** The settings of traces that operators have changed. */
  readonly tracing: TraceFields;
  /** How much all processes log; undefined if operators have not changed it. */
  readonly verbosity: number | undefined;
}

const script = defineScript(
  new URL("./read-fleet.lua", import.meta.url),
  (reply): FleetState => {
    const [now, version, late, tracing, logging] = list(reply);
    return {
      redisNow: integer(now),
      version: text(version),
      late: times(list(late).map(text)),
      tracing: fieldsOf(list(tracing).map(text)),
      verbosity: verbosityIn(text(logging)),
    };
  },
  { keys: ["workers", "version", "tracing", "logging"], args: [], readsOnly: true },
);

export function readFleet(redis: RedisClient): Promise<FleetState> {
  return script(redis, registryKeys, {});
}

/** @returns the version alone, by a plain command: '' if there is none */
export async function readVersion(redis: RedisClient): Promise<string> {
  return (await redis.get(registryKeys.version)) ?? "";
}
