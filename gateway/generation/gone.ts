/** The client of an answer: whether it is still there, and the end of generations whose answer nobody will get. */
import type { ServerResponse } from "node:http";
import type { GenerationRequest, OpenStream } from "../inference.js";

/** Aborts when the connection has closed, or the answer is complete. */
export function whenGone(outgoing: ServerResponse): AbortSignal {
  const gone = new AbortController();
  if (outgoing.destroyed) gone.abort();
  else outgoing.once("close", () => gone.abort());
  return gone.signal;
}

/** For an answer that is given whole. Under a key, others may wait for it too, and a client that left comes back for it: it is made to its end. */
export function wholeUnderKey(request: GenerationRequest): GenerationRequest {
  return request.idempotencyKey === undefined ? request : { ...request, background: true };
}

/** @param request what the stream was admitted for. */
export function cancelWhenGone(stream: OpenStream, request: GenerationRequest | undefined, gone: AbortSignal): void {
  if (request?.idempotencyKey !== undefined) return;
  if (gone.aborted) cancel(stream);
  else gone.addEventListener("abort", () => cancel(stream), { once: true });
}

/**
 * The grace period is for a reader that comes back. Until the head of a stream is sent its client
 * knows nothing that it could come back with, unless it has a key: one that leaves before ends it.
 */
export function cancelUnlessBegun(
  streams: readonly OpenStream[],
  requests: readonly GenerationRequest[],
  outgoing: ServerResponse,
  gone: AbortSignal,
): void {
  const end = () => {
    if (!outgoing.headersSent) cancelAll(streams, requests);
  };
  if (gone.aborted) end();
  else gone.addEventListener("abort", end, { once: true });
}

/** Ends what is not made for an answer any more. Under a key it is left alone: its outcome would be every retry's answer. */
export function cancelAll(streams: readonly OpenStream[], requests: readonly GenerationRequest[]): void {
  if (requests.some(({ idempotencyKey }) => idempotencyKey !== undefined)) return;
  for (const stream of streams) cancel(stream);
}

/** One that cannot be cancelled now ends when the grace period of streams that nobody reads does. */
function cancel(stream: OpenStream): void {
  stream.cancel().catch(() => undefined);
}
