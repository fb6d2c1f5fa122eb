/**
 * Whether there is room for a request, before the gateway sends its bytes: for a large request that
 * costs Redis far less than a refusal. Only the admission call itself decides.
 */
import { readLoads } from "../pieces/load.js";
import type { RedisClient } from "../../redis/connect.js";
import { queuedOf, type Applicant, type Terms } from "./admit.js";
import { limitPassed, limitsOf, type LimitName } from "./limits.js";

/**
 * @returns undefined if there seems to be room
 * @throws the Redis client's error
 */
export async function limitInTheWay(
  redis: RedisClient,
  { limits, shares }: Pick<Terms, "limits" | "shares">,
  { lane: { bucket, model }, tenant, queued, frame }: Applicant,
): Promise<LimitName | undefined> {
  const bytes = frame.length;
  const names = { models: [model], tenants: [tenant], queued: queuedOf([{ tenant, queued }]), largest: bytes };
  await shares?.prepare(names);
  const fields = ["all", `m:${model}`, `t:${tenant}`];
  const loads = await readLoads(redis, redis.isCluster ? bucket : undefined, fields);
  const [all, ofModel, ofTenant] = loads;
  if (all === undefined || ofModel === undefined || ofTenant === undefined) throw new TypeError("a load was not read");
  shares?.note(bucket, loads);
  const most = shares?.limitsOf(bucket, names) ?? limitsOf(limits, names);
  return limitPassed(most, { model, tenant, bytes }, { all, model: ofModel, tenant: ofTenant });
}
