/** Notices that the client of an answer has gone. */
import { setMaxListeners } from "node:events";
import type { ServerResponse } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";

/** Returns a signal that aborts when the connection has closed or the answer is complete. */
export function disconnection(outgoing: ServerResponse): AbortSignal {
  const disconnected = new AbortController();
  // The signal has listeners for each stream of the answer, and is freed with the answer.
  setMaxListeners(0, disconnected.signal);
  if (outgoing.destroyed) disconnected.abort();
  else outgoing.once("close", () => disconnected.abort());
  return disconnected.signal;
}

/**
 * Whether the client is still there when all events that have arrived are handled. Under a load the
 * first record of a stream may overtake the end of its client's connection.
 */
export async function isStillThere(outgoing: ServerResponse): Promise<boolean> {
  // The first turn may end before the event loop has asked the kernel again.
  for (let turn = 0; turn < 2; turn++) await nextTurn();
  return !outgoing.destroyed && outgoing.socket?.readableEnded !== true;
}
