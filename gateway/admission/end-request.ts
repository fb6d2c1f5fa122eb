/** Ends a request from outside of a worker: a client cancels it, or its deadline passes. */
import { capture } from "#shared/capture/capture.js";
import type { RequestAddress } from "#shared/queue/address.js";
import { tokenSubject } from "#shared/queue/keys.js";
import type { Bus } from "#shared/nats/connect.js";
import { cancelRequest, type Cancellation, type Ending } from "#shared/queue/cancel.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { retrying } from "#shared/retry.js";
import { withdraw } from "#shared/queue/admission/withdraw.js";

/** While Redis cannot be reached, a client waits no longer than this. */
const BUDGET_MS = 2_000;

/**
 * Gives the request its outcome, unless it has one. The final record that this adds to a stream's
 * log is published at once. A request that no worker has read yet leaves the queue.
 * @param budgetMs how long each of the two scripts is repeated while Redis cannot be reached
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
    void publishEnd({ redis, bus }, address, cancelled.record);
  }
  if (cancelled.said === "given" || cancelled.said === "known") {
    await retrying(() => withdraw(redis, address), { budgetMs });
  }
  return cancelled;
}

/**
 * Where records are captured, those before the last must come before it, and its worker may just be
 * about to publish them.
 */
async function publishEnd(
  parts: { readonly redis: RedisClient; readonly bus: Bus },
  address: RequestAddress,
  record: Buffer,
): Promise<void> {
  const { bus } = parts;
  try {
    if (bus.captures && bus.isUp()) return void (await capture(parts, address));
  } catch {
    // The worker that has the request, or a gateway that is asked for a subscription, captures it
    // later.
  }
  bus.publish(tokenSubject(address), record);
}
