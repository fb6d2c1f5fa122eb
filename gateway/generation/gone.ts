/** The client of an answer: whether it is still there, and the end of generations whose answer nobody will get. */
import type { ServerResponse } from "node:http";
import type { OpenStream } from "../inference.js";

/** Aborts when the connection has closed, or the answer is complete. */
export function whenGone(outgoing: ServerResponse): AbortSignal {
  const gone = new AbortController();
  if (outgoing.destroyed) gone.abort();
  else outgoing.once("close", () => gone.abort());
  return gone.signal;
}

export function cancelWhenGone(stream: OpenStream, gone: AbortSignal): void {
  if (gone.aborted) cancelAll([stream]);
  else gone.addEventListener("abort", () => cancelAll([stream]), { once: true });
}

/** One that cannot be cancelled now ends when the grace period of streams that nobody reads does. */
export function cancelAll(streams: readonly OpenStream[]): void {
  for (const stream of streams) stream.cancel().catch(() => undefined);
}
