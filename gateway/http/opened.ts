/**
 * Keeps whose each answer is, for the answers that stay open: they count as readers of their key
 * and tenant, and end when their key is good no longer. What the request has put into the queue
 * runs on.
 */
import type { ServerResponse } from "node:http";
import { InferenceError } from "#shared/errors.js";
import type { EndReader } from "../auth/open-readers.js";
import type { Owner } from "../auth/owner/owner.js";
import type { Guard } from "./guard.js";
import type { AuditedRequest } from "./request-audit.js";

const opened = new WeakMap<ServerResponse, { readonly guard: Guard; readonly owner: Owner }>();

/** Notes whose the answer is. */
export function noteOwner(outgoing: ServerResponse, guard: Guard, owner: Owner): void {
  opened.set(outgoing, { guard, owner });
}

/** @param end called if the key is good no longer before the answer has ended */
export function endWithKey(outgoing: ServerResponse, end: EndReader): void {
  const found = opened.get(outgoing);
  // An answer whose client has left emits no further `close`.
  if (found === undefined || outgoing.destroyed) return;
  outgoing.once("close", found.guard.watch(found.owner, end));
}

/**
 * Counts the client of an answer as an open reader, until the answer has closed. Call this before
 * the request costs anything.
 * @throws InferenceError `stream_limit` if the owner may have no more
 */
export function countReader(outgoing: ServerResponse): void {
  const found = opened.get(outgoing);
  // An answer whose client has left emits no further `close`.
  if (found === undefined || outgoing.destroyed) return;
  outgoing.once("close", openReader(found.guard, found.owner, outgoing.req));
}

/**
 * The same for a reader without an answer of node's.
 * @returns a function to call when the reader's connection has closed
 * @throws InferenceError `stream_limit`, of which the audit hears
 */
export function openReader(guard: Guard, owner: Owner, incoming: AuditedRequest): () => void {
  try {
    return guard.countReader?.(owner) ?? (() => undefined);
  } catch (error) {
    if (error instanceof InferenceError) guard.audit?.limited(owner, error, incoming);
    throw error;
  }
}

/** @returns throws the fault of the key, if the key is good no longer */
export function whileKeyIsGood(outgoing: ServerResponse): () => void {
  let fault: InferenceError | undefined;
  endWithKey(outgoing, (found) => (fault = found));
  return () => {
    if (fault !== undefined) throw fault;
  };
}
