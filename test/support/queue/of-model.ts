/** Finds what a fleet that a test runs has of one model in Redis. */
import type { Redis } from "ioredis";
import { bucketOf } from "#shared/queue/address.js";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { modelTag, versionKey } from "#shared/queue/keys.js";
import { BUCKETS } from "../fleet/profile.js";
import { factsOf } from "./facts.js";

/**
 * One of the model's sequences: its name, where it is, the key of the checkpoint that it goes on
 * from, and that of the set of all.
 * @param encodedId such as `u7`
 */
export async function sequenceIn(redis: Redis, model: string, encodedId: string) {
  const lane = { bucket: bucketOf(model, DEFAULT_TENANT, encodedId, BUCKETS), model };
  const name = `${DEFAULT_TENANT}:${encodedId}`;
  const state = versionKey(lane, name, (await factsOf(redis, lane, name))?.at ?? "");
  return { name, lane, state, live: `live:${modelTag(lane)}` };
}
