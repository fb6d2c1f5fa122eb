/**
 * Buries a worker process after its death. A supervisor that has seen the death need not wait until
 * other workers notice the silence, because no new process takes the dead process's name.
 */
import type { Logger } from "pino";
import type { Lane } from "#shared/queue/address.js";
import { bury } from "#shared/queue/work/liveness/bury.js";
import { ownedByLane } from "#shared/queue/work/read/owned.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";

/** The facts that a supervisor needs to bury its worker. */
export interface CrashRelease {
  /** The worker's name in the consumer group of each of its lanes. */
  readonly consumer: string;
  readonly lanes: readonly Lane[];
  readonly leaseMs: number;
  /** The worker sends its settings, so that the supervisor need not load the settings' schema. */
  readonly redisUrl: string;
  readonly logLevel: string;
}

/** How long the supervisor tries, in ms. After that, the other workers have noticed the silence. */
const BUDGET_MS = 1_000;

/** Buries a dead process. If Redis does not answer in time, the other workers bury the process. */
export async function releaseAfterCrash(
  { consumer, lanes, leaseMs, redisUrl }: CrashRelease,
  log: Logger,
): Promise<void> {
  let redis: RedisClient | undefined;
  try {
    redis = connectRedis({ url: redisUrl, name: `${consumer}.crash-release`, log });
    await whenReady(redis, AbortSignal.timeout(BUDGET_MS));
    const left = await ownedByLane(redis, consumer, lanes);
    await bury(
      redis,
      consumer,
      { why: "ended", leaseMs },
      left.map(({ lane }) => lane),
    );
    const steps = left.reduce((sum, { entries }) => sum + entries, 0);
    if (steps > 0) log.info({ steps }, "steps of the dead process are free");
  } catch (error) {
    log.debug({ error: String(error) }, "the other workers will notice by themselves");
  } finally {
    redis?.disconnect();
  }
}
