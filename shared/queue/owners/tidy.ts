/** Forgets keys whose records are gone: the TTL of a revoked key takes only its record. */
import type { RedisClient } from "../../redis/connect.js";
import { ownerKeys } from "../keys.js";
import { readKeys } from "./owners.js";

/** Ids of a look. With each new key, a tenant loses more ids without a record than it can gain. */
const LOOKED_AT = 10;

/** Looks at some keys of a tenant, drawn by chance. */
export async function forgetSomeKeys(redis: RedisClient, tenant: string): Promise<void> {
  const ids = await redis.zrandmember(ownerKeys.idsOf(tenant), LOOKED_AT);
  const records = await readKeys(redis, ids);
  const gone = ids.filter((_, i) => records[i] === undefined);
  if (gone.length === 0) return;
  await Promise.all([
    redis.hdel(ownerKeys.used, ...gone),
    redis.zrem(ownerKeys.ids, ...gone),
    redis.zrem(ownerKeys.idsOf(tenant), ...gone),
  ]);
}
