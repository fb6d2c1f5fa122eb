/** The lanes that a worker serves, as it has announced them. */
import { z } from "zod";
import type { RedisClient } from "../../redis/connect.js";
import { pinOf, type Lane } from "../address.js";
import { registryKeys } from "../keys.js";
import { lanesOf } from "./lane.js";

/** What is needed of an announcement: another version's may differ in the rest. */
const announced = z.object({
  models: z.array(z.object({ name: z.string(), version: z.string(), digest: z.string() })),
});

/**
 * @param buckets how many lanes each model version has
 * @returns none where nothing readable is announced
 */
export async function announcedLanes(redis: RedisClient, worker: string, buckets: number): Promise<Lane[]> {
  const text = await redis.hget(registryKeys.announcements, worker);
  const parsed = announced.safeParse(text === null ? undefined : parse(text));
  if (!parsed.success) return [];
  return parsed.data.models.flatMap((model) => lanesOf({ model: model.name, ...pinOf(model), buckets }));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
