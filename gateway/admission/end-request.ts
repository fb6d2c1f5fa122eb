/** Ends a request from outside of a worker: a client cancels it, or its deadline passes. */
import { publishEnd } from "#shared/capture/capture.js";
import type { RequestAddress } from "#shared/queue/address.js";
import { errorKinds } from "#shared/errors.js";
import type { Bus } from "#shared/nats/connect.js";
import { cancelRequest, type Cancellation, type Ending } from "#shared/queue/ends/cancel.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { retrying } from "#shared/retry.js";
import { withdraw } from "#shared/queue/admission/withdraw.js";
import { endsAt, type ModelEnds } from "../outcomes/counts.js";

/** While the gateway cannot reach Redis, a client waits no longer than this, in ms. */
const BUDGET_MS = 2_000;

/** A request that has just ended. */
export interface EndedRequest {
  /** Whether no worker had the request yet, as far as Redis said so. */
  readonly wasQueued: boolean;
  /** The figures of the request's version. */
  readonly ends: ModelEnds;
  /** From the admission to the end. */
  readonly ms: number;
}

export interface EndTerms {
  /** How long each of the two scripts repeats while the gateway cannot reach Redis, in ms. */
  readonly budgetMs?: number;
  /** Called if the request ends by this call. */
  readonly counted: (ended: EndedRequest) => void;
}

/**
 * Gives the request an outcome, unless the request has one. Publishes at once the final record that
 * this adds to a stream's log. A request that no worker has read yet leaves the queue.
 * @throws the Redis client's error after that
 */
export async function endRequest(
  { redis, bus }: { readonly redis: RedisClient; readonly bus: Bus },
  address: RequestAddress,
  ending: Ending,
  { budgetMs = BUDGET_MS, counted }: EndTerms,
): Promise<Cancellation> {
  const cancelled = await retrying(() => cancelRequest(redis, address, ending), { budgetMs });
  if (cancelled.said === "given" && cancelled.last !== undefined) {
    void publishEnd({ redis, bus }, address, cancelled.last);
  }
  if (cancelled.said !== "given" && cancelled.said !== "known") return cancelled;
  let wasQueued = false;
  try {
    wasQueued = (await retrying(() => withdraw(redis, address), { budgetMs })) === "withdrawn";
  } finally {
    if (cancelled.said === "given") {
      const { version, ms } = cancelled;
      counted({ wasQueued, ends: endsAt(address, version), ms });
    }
  }
  return cancelled;
}

/**
 * Gives a request up whose client has left: it leaves the queue, or ends as cancelled when its
 * worker would commit. As with Triton, the sequence of such a step ends, since its client cannot
 * know whether the step counts. If this fails, the request's deadline ends it.
 * @param ttlMs how long Redis keeps the outcome, which the request's worker may find
 */
export async function giveUp(
  parts: { readonly redis: RedisClient; readonly bus: Bus },
  address: RequestAddress,
  ttlMs: number,
): Promise<void> {
  const message = errorKinds.cancelled.texts.byClient;
  const ending = { code: "cancelled", message, ttlMs, stream: false, endsSequence: true } as const;
  await endRequest(parts, address, ending, { counted: ({ ends, ms }) => ends.cancelled("client_left", ms) });
}
