/** Tells the fleet what this worker serves, under a lease: a worker that dies is out of the list within two leases. */
import type { Logger } from "pino";
import type { Announcement } from "#shared/contract/announcement.js";
import { registryKeys } from "#shared/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { defineScript, integer } from "#shared/redis/script.js";
import { delay } from "#shared/retry.js";

const announceScript = defineScript(new URL("./announce.lua", import.meta.url), integer);

export function announce(redis: RedisClient, announcement: Announcement, ttlMs: number): Promise<number> {
  const { workers, announcements } = registryKeys;
  return announceScript(redis, [workers, announcements], [announcement.worker, JSON.stringify(announcement), ttlMs]);
}

export async function announceWhileOpen(
  redis: RedisClient,
  announcement: Announcement,
  leaseMs: number,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await announce(redis, announcement, leaseMs * 2);
    } catch (error) {
      log.debug({ error: String(error) }, "announcement failed; the next one follows");
    }
    await delay(leaseMs / 2, signal);
  }
}

export async function withdraw(redis: RedisClient, worker: string): Promise<void> {
  await redis.multi().zrem(registryKeys.workers, worker).hdel(registryKeys.announcements, worker).exec();
}
