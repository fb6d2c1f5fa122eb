/**
 * What a worker process leaves behind when it dies, made free at once. A supervisor that has seen the death need not wait for the leases to run
 * out: nobody can come back under that name.
 */
import type { Logger } from "pino";
import { z } from "zod";
import type { Lane } from "#shared/keys.js";
import { connectRedis, whenReady } from "#shared/redis/connect.js";
import { abandon } from "./queue/abandon.js";

const estate = z.object({
  consumer: z.string(),
  lanes: z.array(z.object({ model: z.string(), version: z.string(), shard: z.number() })),
});

/** The worker tells its supervisor, once its lanes are open. */
export function declareEstate(consumer: string, lanes: readonly Lane[]): void {
  process.send?.({ consumer, lanes } satisfies { consumer: string; lanes: readonly Lane[] });
}

/** Past this the leases have done it. */
const BUDGET_MS = 1_000;

/** @param message what the worker has told its supervisor. */
export async function settleEstate(message: unknown, url: string, log: Logger): Promise<void> {
  const { data } = estate.safeParse(message);
  if (data === undefined) return;
  const { consumer, lanes } = data;
  const redis = connectRedis({ url, name: `${consumer}.estate`, log });
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
