/** Finds the Redis keys of a model in a fleet that a test runs. */
import type { Redis } from "ioredis";
import { bucketOf } from "#shared/queue/address.js";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { modelTag, versionKey } from "#shared/queue/keys.js";
import { BUCKETS } from "../fleet/profile.js";
import { factsOf } from "./facts.js";

/**
 * A sequence of the model: its name, its lane, the key of its current checkpoint, and the key of
 * the set of live sequences.
 * @param encodedId such as `u7`
 */
export async function sequenceIn(redis: Redis, model: string, encodedId: string, tenant = DEFAULT_TENANT) {
  const lane = { bucket: bucketOf(model, tenant, encodedId, BUCKETS), model };
  const name = `${tenant}:${encodedId}`;
  const state = versionKey(lane, name, (await factsOf(redis, lane, name))?.at ?? "");
  return { name, lane, state, live: `live:${modelTag(lane)}` };
}
