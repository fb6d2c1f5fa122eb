/**
 * What a worker process leaves behind when it dies, made free at once. A supervisor that has seen the death need not wait for the leases to run
 * out: nobody can come back under that name.
 */
import type { Logger } from "pino";
import type { Lane } from "#shared/keys.js";
import { connectRedis, whenReady } from "#shared/redis/connect.js";
import { abandon } from "./queue/abandon.js";

export interface Estate {
  readonly consumer: string;
  readonly lanes: readonly Lane[];
  /** Settings that are for the worker to read: its supervisor would have to load what checks them. */
  readonly redisUrl: string;
  readonly logLevel: string;
}

/** The worker tells its supervisor, once its lanes are open, and tells it nothing else. */
export function declareEstate(estate: Estate): void {
  process.send?.(estate);
}

/** Past this the leases have done it. */
const BUDGET_MS = 1_000;

export async function settleEstate({ consumer, lanes, redisUrl }: Estate, log: Logger): Promise<void> {
  const redis = connectRedis({ url: redisUrl, name: `${consumer}.estate`, log });
  try {
    await whenReady(redis, AbortSignal.timeout(BUDGET_MS));
    const left = await Promise.all(lanes.map((lane) => abandon({ redis, lane, consumer })));
    const steps = left.reduce((sum, count) => sum + count, 0);
    if (steps > 0) log.info({ steps }, "steps of the dead process are free");
  } catch (error) {
    log.debug({ error: String(error) }, "the leases will run out by themselves");
  } finally {
    redis.disconnect();
  }
}
