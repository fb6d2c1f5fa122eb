/** The members of the fleet, from the registry, read alike by gateways and workers. */
import type { RedisClient } from "../redis/connect.js";
import { REMEMBERED_MS, registryKeys } from "./keys.js";

/** Workers by name, with a time in Redis ms. */
export type Times = ReadonlyMap<string, number>;

export interface Members {
  /** Workers that neither left altogether nor were declared dead. */
  readonly living: readonly string[];
  /** When each remembered worker left or was declared dead. The worker may still live. */
  readonly gone: Times;
  /** The gone workers that left by themselves. */
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

/** @returns the announcement of each worker, as written; null if there is none */
export async function readAnnouncements(redis: RedisClient, workers: readonly string[]): Promise<(string | null)[]> {
  return workers.length === 0 ? [] : redis.hmget(registryKeys.announcements, ...workers);
}

/** Decodes the reply of a sorted set with its scores. */
export function times(pairs: readonly string[]): Times {
  return new Map(Array.from({ length: pairs.length / 2 }, (_, i) => [pairs[2 * i] ?? "", Number(pairs[2 * i + 1])]));
}
