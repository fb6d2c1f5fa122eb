/** The Idempotency-Key of a change to a sequence as a whole; see once.lua. */
import { createHash } from "node:crypto";
import type { Arg } from "../../redis/script.js";
import { changeKey } from "../keys.js";
import type { SequenceAddress } from "./address.js";

/** Which change this is, where its client has named it. */
export interface Once {
  /** The client's key. It counts for the sequence that the change is asked of. */
  readonly key: string;
  /** The sequence that the client named in its request; a fork is made elsewhere. */
  readonly of: string;
  /** Digest of what is asked. */
  readonly digest: string;
  /** How long it is remembered, in ms. */
  readonly ttlMs: number;
}

/** @param at where the change is made: its record lies there */
export function recordKey(at: SequenceAddress, { of, key }: Once): string {
  const named = createHash("sha256")
    .update(JSON.stringify([of, key]))
    .digest("base64url");
  return changeKey(at, named);
}

/** The three arguments of the script that makes the change. */
export function onceArgs(at: SequenceAddress, once: Once | undefined): Arg[] {
  return once === undefined ? ["", "", 0] : [recordKey(at, once), once.digest, once.ttlMs];
}
