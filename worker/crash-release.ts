/**
 * Declares a worker process dead when it has ended. A supervisor that has seen the death need not
 * wait until the others notice the silence, since nobody can come back under the dead process's
 * name.
 */
import type { Logger } from "pino";
import type { Lane } from "#shared/queue/address.js";
import { bury } from "#shared/queue/work/bury.js";
import { ownedByLane } from "#shared/queue/work/owned.js";
import { connectRedis, whenReady } from "#shared/redis/connect.js";

/** What the supervisor needs to know to free what a worker holds. */
export interface CrashRelease {
  /** The worker's name in the consumer group of each of its lanes. */
  readonly consumer: string;
  readonly lanes: readonly Lane[];
  /**
   * The worker passes these settings on, since its supervisor would have to load what checks them.
   */
  readonly redisUrl: string;
  readonly logLevel: string;
}

/** Tells the supervisor, once the lanes are open. It is the only message that a worker sends it. */
export function declareCrashRelease(release: CrashRelease): void {
  process.send?.(release);
}

/** How long the supervisor tries. By then the others have noticed by themselves. */
const BUDGET_MS = 1_000;

/**
 * Buries a dead process. A Redis that cannot be asked in time leaves it to the other workers.
 */
export async function releaseAfterCrash({ consumer, lanes, redisUrl }: CrashRelease, log: Logger): Promise<void> {
  const redis = connectRedis({ url: redisUrl, name: `${consumer}.crash-release`, log });
  try {
    await whenReady(redis, AbortSignal.timeout(BUDGET_MS));
    const left = await ownedByLane(redis, consumer, lanes);
    await bury(
      redis,
      consumer,
      { why: "ended" },
      left.map(({ lane }) => lane),
    );
    const steps = left.reduce((sum, { entries }) => sum + entries, 0);
    if (steps > 0) log.info({ steps }, "steps of the dead process are free");
  } catch (error) {
    log.debug({ error: String(error) }, "the other workers will notice by themselves");
  } finally {
    redis.disconnect();
  }
}
