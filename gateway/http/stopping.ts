/**
 * Keeps the answers that a stopping gateway ends at once, because their clients can resume at
 * another gateway. Other answers run until they end by themselves or the drain is over. Then the
 * gateway cuts them, and no client of these has left.
 */
import type { ServerResponse } from "node:http";

const ends = new WeakMap<ServerResponse, () => void>();

/** @param end called when the gateway stops before the answer has ended */
export function endWhenStopping(outgoing: ServerResponse, end: () => void): void {
  ends.set(outgoing, end);
}

/** Ends the answer on `outgoing` if its client can resume at another gateway. */
export function endIfResumable(outgoing: ServerResponse): void {
  ends.get(outgoing)?.();
}

const cut = new WeakSet<ServerResponse>();

/** Call this before the gateway cuts the connection of an answer because it stops. */
export function noteCut(outgoing: ServerResponse): void {
  cut.add(outgoing);
}

/** Whether the gateway itself cut the connection of the answer. */
export function isCut(outgoing: ServerResponse): boolean {
  return cut.has(outgoing);
}
