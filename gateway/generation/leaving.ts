/** Cancels generations whose answer has no reader left. */
import type { StreamingRequest } from "../admission/inference.js";
import type { OpenStream } from "../stream/open-stream.js";

/**
 * Prepares the request of an answer in one piece. Under an Idempotency-Key other clients may wait
 * for the same answer, and a client that has left may return for it. So such a request runs to its
 * end.
 */
export function wholeUnderKey<Request extends StreamingRequest>(request: Request): Request {
  return request.idempotencyKey === undefined ? request : { ...request, background: true };
}

/**
 * Cancels the stream of an answer in one piece when the client disconnects, unless the request has
 * an Idempotency-Key.
 * @param request request that opened the stream
 */
export function cancelOnDisconnect(
  stream: OpenStream,
  request: Pick<StreamingRequest, "idempotencyKey"> | undefined,
  disconnected: AbortSignal,
): void {
  if (request?.idempotencyKey !== undefined) return;
  if (disconnected.aborted) cancel(stream);
  else disconnected.addEventListener("abort", () => cancel(stream), { once: true });
}

/**
 * Cancels streams whose client disconnects before the gateway sends the head of the answer. The
 * grace period is for readers that return. But before the head a client has no id to return with,
 * unless the request has an Idempotency-Key.
 * @param hasBegun whether the gateway has sent the head
 */
export function cancelUnlessBegun(
  streams: readonly OpenStream[],
  requests: readonly StreamingRequest[],
  hasBegun: () => boolean,
  disconnected: AbortSignal,
): void {
  const end = () => {
    if (!hasBegun()) cancelAll(streams, requests);
  };
  if (disconnected.aborted) end();
  else disconnected.addEventListener("abort", end, { once: true });
}

/**
 * Cancels streams that no answer needs any more. Leaves streams under an Idempotency-Key alone,
 * because every retry would get the cancellation as its answer.
 */
export function cancelAll(streams: readonly OpenStream[], requests: readonly StreamingRequest[]): void {
  if (requests.some(({ idempotencyKey }) => idempotencyKey !== undefined)) return;
  for (const stream of streams) cancel(stream);
}

/** If the cancellation fails, the stream ends after the grace period of streams without readers. */
function cancel(stream: OpenStream): void {
  stream.cancel().catch(() => undefined);
}
