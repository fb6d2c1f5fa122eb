/**
 * The client that waits for an outcome, and may leave. As with Triton, a request whose client has
 * left is given up, and the sequence of a step that was given up ends, since its client cannot know
 * whether the step counts. A client that can ask again gives nothing up: it has a key, or names the
 * step by its number.
 */
import { bucketOf, sequenceName, type RequestAddress } from "#shared/queue/address.js";
import { encodeCorrelationId } from "#shared/contract/sequence.js";
import { errorKinds } from "#shared/errors.js";
import type { Bus } from "#shared/nats/connect.js";
import { endSequence } from "#shared/queue/sequences/end.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { endRequest, type EndedRequest } from "./end-request.js";
import type { AnyRequest } from "./inference.js";

export interface Client {
  readonly hasLeft: boolean;
  /**
   * @param leave called once, when the client leaves
   * @returns a function to call when nobody wants to know any more
   */
  onLeave(leave: () => void): () => void;
}

/** @param signal aborts when the client leaves */
export function clientOf(signal: AbortSignal): Client {
  return {
    get hasLeft() {
      return signal.aborted;
    },
    onLeave(leave) {
      signal.addEventListener("abort", leave, { once: true });
      return () => signal.removeEventListener("abort", leave);
    },
  };
}

/** Whether the client can ask for the outcome again. */
export function isRepeatable({ idempotencyKey, sequence }: Pick<AnyRequest, "idempotencyKey" | "sequence">): boolean {
  return idempotencyKey !== undefined || sequence?.number !== undefined;
}

/**
 * Gives a request up: it leaves the queue, or ends as cancelled when its worker would commit. If
 * this fails, the request's deadline ends it.
 * @param ttlMs how long Redis keeps the outcome, which the request's worker may find
 */
export async function giveUp(
  { redis, bus, buckets }: { readonly redis: RedisClient; readonly bus: Bus; readonly buckets: number },
  address: RequestAddress,
  { model, tenant, sequence }: AnyRequest,
  ttlMs: number,
): Promise<void> {
  const ending = { code: "cancelled", message: errorKinds.cancelled.texts.byClient, ttlMs, stream: false } as const;
  const counted = ({ ends, ms }: EndedRequest) => ends.cancelled("client_left", ms);
  const { said } = await endRequest({ redis, bus }, address, ending, { counted });
  if (said !== "given" || sequence === undefined) return;
  const id = encodeCorrelationId(sequence.id);
  const bucket = bucketOf(model.name, tenant, id, buckets);
  await endSequence(redis, { bucket, model: model.name, name: sequenceName(tenant, id) });
}
