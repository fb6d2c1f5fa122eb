/**
 * Keeps the answers that a stopping gateway ends at once, because their clients can resume at
 * another gateway. Other answers run until they end by themselves or the drain is over.
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
