/**
 * Tells whether the client of an answer is still there, and cancels generations whose answer nobody
 * will get.
 */
import { setMaxListeners } from "node:events";
import type { ServerResponse } from "node:http";
import type { GenerationRequest } from "../admission/inference.js";
import type { OpenStream } from "../stream/open-stream.js";

/** The signal aborts when the connection has closed or the answer is complete. */
export function disconnection(outgoing: ServerResponse): AbortSignal {
  const disconnected = new AbortController();
  // It has listeners for each stream of the answer, and goes with the answer.
  setMaxListeners(0, disconnected.signal);
  if (outgoing.destroyed) disconnected.abort();
  else outgoing.once("close", () => disconnected.abort());
  return disconnected.signal;
}

/**
 * Prepares the request of an answer that is given whole. Under an Idempotency-Key others may wait
 * for the same answer, and a client that has left may come back for it, so such a request runs to
 * its end.
 */
export function wholeUnderKey(request: GenerationRequest): GenerationRequest {
  return request.idempotencyKey === undefined ? request : { ...request, background: true };
}

/**
 * Cancels the stream of an answer that is given whole when its client disconnects, unless the
 * request has an Idempotency-Key.
 * @param request what the stream was admitted for
 */
export function cancelOnDisconnect(
  stream: OpenStream,
  request: GenerationRequest | undefined,
  disconnected: AbortSignal,
): void {
  if (request?.idempotencyKey !== undefined) return;
  if (disconnected.aborted) cancel(stream);
  else disconnected.addEventListener("abort", () => cancel(stream), { once: true });
}

/**
 * Cancels streams whose client disconnects before the head of the answer is sent. The grace period
 * is for readers that come back, but until the head is sent a client knows no id with which it
 * could, unless the request has an Idempotency-Key.
 */
export function cancelUnlessBegun(
  streams: readonly OpenStream[],
  requests: readonly GenerationRequest[],
  outgoing: ServerResponse,
  disconnected: AbortSignal,
): void {
  const end = () => {
    if (!outgoing.headersSent) cancelAll(streams, requests);
  };
  if (disconnected.aborted) end();
  else disconnected.addEventListener("abort", end, { once: true });
}

/**
 * Cancels streams that no answer needs any more. Under an Idempotency-Key they are left alone,
 * since the outcome would be the answer of every retry.
 */
export function cancelAll(streams: readonly OpenStream[], requests: readonly GenerationRequest[]): void {
  if (requests.some(({ idempotencyKey }) => idempotencyKey !== undefined)) return;
  for (const stream of streams) cancel(stream);
}

/** A stream that cannot be cancelled now ends after the grace period of streams without readers. */
function cancel(stream: OpenStream): void {
  stream.cancel().catch(() => undefined);
}
