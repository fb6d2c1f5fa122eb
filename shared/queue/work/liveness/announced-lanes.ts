/** The models that a worker has announced, and their lanes. */
import { z } from "zod";
import type { RedisClient } from "../../../redis/connect.js";
import { pinOf, type Lane } from "../../address.js";
import { registryKeys } from "../../keys.js";
import { lanesOf } from "../lane.js";

/** The fields in use here: the announcement of another version of Baton may have other fields. */
const announced = z.object({
  replaces: z.string().optional(),
  models: z.array(
    z.object({
      name: z.string(),
      version: z.string(),
      digest: z.string(),
      sequence: z.object({ takesStatesOf: z.array(z.string()).optional() }).optional(),
    }),
  ),
});

export type AnnouncedModel = z.infer<typeof announced>["models"][number];

/** @returns an empty list if there is no readable announcement */
export function announcedModels(text: string | null | undefined): AnnouncedModel[] {
  const parsed = announced.safeParse(typeof text === "string" ? parse(text) : undefined);
  return parsed.success ? parsed.data.models : [];
}

/** @returns the worker whose place this worker has taken; undefined if it has taken none */
export function announcedReplaces(text: string | null | undefined): string | undefined {
  const parsed = announced.safeParse(typeof text === "string" ? parse(text) : undefined);
  return parsed.data?.replaces;
}

/**
 * @param buckets how many lanes each model version has
 * @returns an empty list if there is no readable announcement
 */
export async function announcedLanes(redis: RedisClient, worker: string, buckets: number): Promise<Lane[]> {
  const text = await redis.hget(registryKeys.announcements, worker);
  return announcedModels(text).flatMap((model) => lanesOf({ model: model.name, ...pinOf(model), buckets }));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
