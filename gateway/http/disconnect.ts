/** Notices that the client of an answer has gone. */
import { setMaxListeners } from "node:events";
import type { ServerResponse } from "node:http";

/** Returns a signal that aborts when the connection has closed or the answer is complete. */
export function disconnection(outgoing: ServerResponse): AbortSignal {
  const disconnected = new AbortController();
  // The signal has listeners for each stream of the answer, and is freed with the answer.
  setMaxListeners(0, disconnected.signal);
  if (outgoing.destroyed) disconnected.abort();
  else outgoing.once("close", () => disconnected.abort());
  return disconnected.signal;
}
