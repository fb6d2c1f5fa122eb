/**
 * Why a worker goes on with the models that it has: the process that was to take its place could
 * not load them. The announcement of a worker never changes, so the reason lies beside it.
 */
import { z } from "zod";
import type { RedisClient } from "../redis/connect.js";
import { registryKeys } from "./keys.js";

const refusal = z.object({
  /** The number of the wish that could not be fulfilled; absent if there was none. */
  number: z.number().optional(),
  reason: z.string(),
  /** The models that could not be loaded. */
  failed: z.array(z.object({ name: z.string(), version: z.string().optional(), reason: z.string() })),
});

export type Refusal = Readonly<z.infer<typeof refusal>>;

/** Notes a refusal, and lets gateways read the fleet again. */
export async function noteRefusal(redis: RedisClient, worker: string, noted: Refusal): Promise<void> {
  await redis.hset(registryKeys.refusals, worker, JSON.stringify(noted));
  await redis.set(registryKeys.version, `${worker} ${Date.now()}`);
}

/**
 * Reads the refusals by their workers, of which some may be gone. A worker of another version of
 * Baton may have noted one that cannot be read: it is passed over, because a mere reason must stop
 * neither a gateway nor a worker.
 */
export async function readRefusals(redis: RedisClient): Promise<ReadonlyMap<string, Refusal>> {
  const noted = Object.entries(await redis.hgetall(registryKeys.refusals));
  return new Map(
    noted.flatMap(([worker, text]) => {
      const read = refusalIn(text);
      return read === undefined ? [] : [[worker, read] as const];
    }),
  );
}

function refusalIn(text: string): Refusal | undefined {
  try {
    return refusal.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
