/** The place of a sequence, for operations on the whole sequence and not on a step. */
import { modelTag, sequencesKey } from "../keys.js";
import type { RequestAddress } from "../address.js";

export interface SequenceAddress extends Pick<RequestAddress, "bucket" | "model"> {
  /** From `sequenceName`. The bucket follows from the name (`bucketOf`). */
  readonly name: string;
}

/** The keys of its model's sequences in its bucket: their facts, and their live set. */
export function keysOf(sequence: Omit<SequenceAddress, "name">) {
  return { sequences: sequencesKey(sequence), live: `live:${modelTag(sequence)}` };
}
