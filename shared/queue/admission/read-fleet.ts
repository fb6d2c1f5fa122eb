/** The typed wrapper of read-fleet.lua: whether the fleet has changed, and what it is now. */
import { REMEMBERED_MS, registryKeys } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text } from "../../redis/script.js";

/** Workers by name, with a time in Redis ms. */
export type Times = ReadonlyMap<string, number>;

export interface FleetState {
  readonly redisNow: number;
  /** Another one whenever a worker has joined, left or been declared dead. */
  readonly version: string;
  /** Workers that count as living no longer, and until when each did. */
  readonly late: Times;
}

const script = defineScript(new URL("./read-fleet.lua", import.meta.url), (reply): FleetState => {
  const [now, version, late] = list(reply);
  return { redisNow: integer(now), version: text(version), late: times(list(late).map(text)) };
});

export function readFleet(redis: RedisClient): Promise<FleetState> {
  return script(redis, [registryKeys.workers, registryKeys.version], []);
}

/** @returns the version alone, with a plain command: '' where there is none */
export async function readVersion(redis: RedisClient): Promise<string> {
  return (await redis.get(registryKeys.version)) ?? "";
}

export interface Members {
  /** Those that were not declared dead, and have not left altogether. */
  readonly living: readonly string[];
  /** When each worker left, or was declared dead, that is still remembered. One may still live. */
  readonly gone: Times;
  /** Those of the gone that left by themselves. */
  readonly left: ReadonlySet<string>;
}

export async function readMembers(redis: RedisClient, redisNow: number): Promise<Members> {
  const [living, gone, left] = await Promise.all([
    redis.zrange(registryKeys.workers, "0", "-1"),
    redis.zrange(registryKeys.gone, redisNow - REMEMBERED_MS, "+inf", "BYSCORE", "WITHSCORES"),
    redis.smembers(registryKeys.left),
  ]);
  return { living, gone: times(gone), left: new Set(left) };
}

/** @returns the announcement of each worker as it was written; null where there is none */
export async function readAnnouncements(redis: RedisClient, workers: readonly string[]): Promise<(string | null)[]> {
  return workers.length === 0 ? [] : redis.hmget(registryKeys.announcements, ...workers);
}

function times(pairs: readonly string[]): Times {
  return new Map(Array.from({ length: pairs.length / 2 }, (_, i) => [pairs[2 * i] ?? "", Number(pairs[2 * i + 1])]));
}
