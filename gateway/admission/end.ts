/** Ends a request from outside of a worker: a client cancels it, or its deadline passes. */
import type { RequestAddress } from "#shared/contract/request-id.js";
import { tokenSubject } from "#shared/keys.js";
import type { Bus } from "#shared/nats/connect.js";
import { cancelRequest, type Cancellation, type Ending } from "#shared/queue/cancel.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { retrying } from "#shared/retry.js";
import { onlyTenant } from "../tenant.js";
import { withdraw } from "./withdraw.js";

/** How long a client waits for it at most. */
const BUDGET_MS = 2_000;

/**
 * @param budgetMs how long Redis is asked again while it cannot be reached
 * @throws the Redis client's error after that
 */
export async function endRequest(
  { redis, bus }: { readonly redis: RedisClient; readonly bus: Bus },
  address: RequestAddress,
  ending: Ending,
  budgetMs = BUDGET_MS,
): Promise<Cancellation> {
  const cancelled = await retrying(() => cancelRequest(redis, address, ending), { budgetMs });
  if (cancelled.said === "given" && cancelled.record !== undefined) {
    bus.publish(tokenSubject(onlyTenant, address.lane, address.request), cancelled.record);
  }
  if (cancelled.said === "given" || cancelled.said === "known") {
    await retrying(() => withdraw(redis, address), { budgetMs });
  }
  return cancelled;
}
