/** What is kept of requests that were set aside, as set-aside.lua takes it. */

/** Of the frame of a request that was set aside so many bytes are kept, its beginning. */
const SET_ASIDE_FRAME_BYTES = 4_096;
const DAY_MS = 86_400_000;

/** Who sets requests aside. */
interface Keeping {
  /** How many are kept for a model in a bucket, and for how long. */
  readonly setAside?: { readonly entries: number; readonly ageMs: number };
}

/** The limits as the scripts take them. */
export function limitsOfSetAside({ setAside = { entries: 256, ageMs: 7 * DAY_MS } }: Keeping): string {
  return `${setAside.entries} ${SET_ASIDE_FRAME_BYTES} ${setAside.ageMs}`;
}

/**
 * How many requests that were set aside a model keeps in each bucket.
 * @param bytes what the model's may take in all buckets
 */
export function setAsideEntries(bytes: number, buckets: number): number {
  return Math.max(1, Math.floor(bytes / buckets / SET_ASIDE_FRAME_BYTES));
}
