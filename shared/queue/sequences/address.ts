/** Where a sequence is found by those who act on it as a whole, past its steps. */
import { modelTag, sequencesKey } from "../keys.js";
import type { RequestAddress } from "../address.js";

export interface SequenceAddress extends Pick<RequestAddress, "bucket" | "model"> {
  /** From `sequenceName`. Its bucket follows from it (`bucketOf`). */
  readonly name: string;
}

/** What is known of its model's sequences in its bucket, and the set of these. */
export function keysOf(sequence: Omit<SequenceAddress, "name">): { readonly seqs: string; readonly live: string } {
  return { seqs: sequencesKey(sequence), live: `live:${modelTag(sequence)}` };
}
