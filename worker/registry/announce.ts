/** Tells the fleet what this worker serves, under a lease: a worker that dies is out of the list within two leases. */
import { writeFile } from "node:fs/promises";
import type { Logger } from "pino";
import type { Announcement } from "#shared/contract/announcement.js";
import { REMEMBERED_MS, registryKeys } from "#shared/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { defineScript, integer } from "#shared/redis/script.js";
import { delay } from "#shared/retry.js";

const announceScript = defineScript(new URL("./announce.lua", import.meta.url), integer);

/** @param ttlMs 0 when the worker leaves: it is at once no longer live. */
export function announce(redis: RedisClient, announcement: Announcement, ttlMs: number): Promise<number> {
  const { workers, announcements } = registryKeys;
  return announceScript(
    redis,
    [workers, announcements],
    [announcement.worker, JSON.stringify(announcement), ttlMs, REMEMBERED_MS],
  );
}

export async function announceWhileOpen(
  redis: RedisClient,
  announcement: Announcement,
  leaseMs: number,
  log: Logger,
  signal: AbortSignal,
  /** Touched whenever Redis has taken the announcement: a container's health check looks at its age. */
  healthFile?: string,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await announce(redis, announcement, leaseMs * 2);
      if (healthFile !== undefined) await writeFile(healthFile, announcement.worker);
    } catch (error) {
      log.debug({ error: String(error) }, "announcement failed; the next one follows");
    }
    await delay(leaseMs / 2, signal);
  }
}
