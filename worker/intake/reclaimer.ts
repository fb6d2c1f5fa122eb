/** Takes over steps whose worker is gone, or stopped renewing them. They are suspects: one of them may be why it stopped. */
import type { Logger } from "pino";
import type { RedisClock } from "#shared/redis/clock.js";
import { delay } from "#shared/retry.js";
import type { LaneQueue } from "../queue/lane.js";
import { reclaim } from "../queue/reclaim.js";
import type { Taken } from "../queue/stream.js";
import type { Hand } from "./hand.js";
import type { Steadiness } from "./steadiness.js";
import type { Watcher } from "./watcher.js";

export interface Reclaimer {
  readonly queue: LaneQueue;
  readonly hand: Hand;
  readonly clock: RedisClock;
  readonly leaseMs: number;
  readonly steadiness: Steadiness;
  /** How many more suspects the hand may take now. */
  readonly room: () => number;
  readonly accept: (taken: Taken) => void;
  readonly watcher: Watcher;
  readonly log: Logger;
}

export async function reclaimWhileOpen(
  { queue, hand, clock, leaseMs, steadiness, room, accept, watcher, log }: Reclaimer,
  signal: AbortSignal,
) {
  const { redis } = queue;
  let cursor = "0-0";
  while (!signal.aborted) {
    await delay(watcher.pause(), signal);
    if (signal.aborted || !steadiness.leasesCount(performance.now()) || redis.status !== "ready") continue;
    try {
      await watcher.look();
    } catch (error) {
      log.debug({ error: String(error) }, "the look for the dead failed; the next scan looks again");
    }
    try {
      // Asked anew before each call: the look before it may have waited for a Redis that was frozen.
      for (let most = room(); most > 0 && steadiness.leasesCount(performance.now()); most = room()) {
        const notAfter = clock.toRedis(performance.now()) + leaseMs / 3;
        const found = await reclaim(queue, leaseMs, most, cursor, notAfter);
        cursor = found.cursor;
        // Our own entries come back too when this process was stopped for longer than a lease; those it still holds.
        const fresh = found.deliveries.filter(({ entry }) => !hand.has(entry));
        if (found.deleted.length > 0)
          log.error({ entries: found.deleted }, "pending entries were deleted from outside");
        if (fresh.length > 0) log.info({ count: fresh.length }, "reclaimed");
        accept({ deliveries: fresh, unreadable: found.unreadable });
        if (cursor === "0-0") break;
      }
    } catch (error) {
      log.debug({ error: String(error) }, "reclaim failed; the next scan tries again");
    }
  }
}
