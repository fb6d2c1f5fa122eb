/** The Idempotency-Key of a change to a sequence as a whole; see once.lua. */
import { createHash } from "node:crypto";
import { changeKey } from "../keys.js";
import type { SequenceAddress } from "./address.js";

/** Names a change, so that the change takes effect once. */
export interface Once {
  /** The client's key. It counts only for the sequence in `of`. */
  readonly key: string;
  /**
   * The sequence that the client named in its request. A fork into another bucket has its record at
   * the new sequence.
   */
  readonly of: string;
  /** Digest of the client's order. */
  readonly digest: string;
  /** How long the record lives, in ms. */
  readonly ttlMs: number;
}

/** @param at the sequence at which the record lies, in the bucket of the change */
export function recordKey(at: SequenceAddress, { of, key }: Once): string {
  const named = createHash("sha256")
    .update(JSON.stringify([of, key]))
    .digest("base64url");
  return changeKey(at, named);
}

/** The arguments by which the script makes the change once. */
export function onceArgs(at: SequenceAddress, once: Once | undefined) {
  if (once === undefined) return { record: "", digest: "", ttl: 0 };
  return { record: recordKey(at, once), digest: once.digest, ttl: once.ttlMs };
}
