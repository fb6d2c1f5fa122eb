/** Ends a request from outside of a worker: a client cancels it, or its deadline passes. */
import type { RequestAddress } from "#shared/contract/request-id.js";
import { tokenSubject } from "#shared/keys.js";
import type { Bus } from "#shared/nats/connect.js";
import { cancelRequest, type Cancellation, type Ending } from "#shared/queue/cancel.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { retrying } from "#shared/retry.js";
import { onlyTenant } from "../tenant.js";
import { withdraw } from "./withdraw.js";

const BUDGET_MS = 2_000;

/** @throws the client's error while Redis cannot be asked */
export async function endRequest(
  { redis, bus }: { readonly redis: RedisClient; readonly bus: Bus },
  address: RequestAddress,
  ending: Ending,
): Promise<Cancellation> {
  const cancelled = await retrying(() => cancelRequest(redis, address, ending), { budgetMs: BUDGET_MS });
  if (cancelled.said === "given" && cancelled.record !== undefined) {
    bus.publish(tokenSubject(onlyTenant, address.lane, address.request), cancelled.record);
  }
  if (cancelled.said === "given" || cancelled.said === "known") {
    await retrying(() => withdraw(redis, address), { budgetMs: BUDGET_MS });
  }
  return cancelled;
}
