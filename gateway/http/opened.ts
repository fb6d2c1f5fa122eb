/**
 * Keeps whose each answer is, for the answers that stay open: they end when their key is good no
 * longer. What the request has put into the queue runs on.
 */
import type { ServerResponse } from "node:http";
import type { InferenceError } from "#shared/errors.js";
import type { EndReader } from "../auth/open-readers.js";
import type { Owner } from "../auth/owner/owner.js";
import type { Guard } from "./guard.js";

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

/** @returns throws the fault of the key, if the key is good no longer */
export function whileKeyIsGood(outgoing: ServerResponse): () => void {
  let fault: InferenceError | undefined;
  endWithKey(outgoing, (found) => (fault = found));
  return () => {
    if (fault !== undefined) throw fault;
  };
}
