/** The limits of requests set aside, as set-aside.lua takes them. */
import { asideLimits } from "../../records/requests.js";

/** Bytes kept of the frame of a request set aside, from its beginning. */
const SET_ASIDE_FRAME_BYTES = 4_096;
const DAY_MS = 86_400_000;

/** The settings of a process that sets requests aside. */
interface Keeping {
  /** How many requests stay for a model in a bucket, and for how long. */
  readonly setAside?: { readonly entries: number; readonly ageMs: number };
}

/** The limits in the scripts' form. */
export function limitsOfSetAside({ setAside = { entries: 256, ageMs: 7 * DAY_MS } }: Keeping): string {
  return asideLimits.write({ entries: setAside.entries, bytes: SET_ASIDE_FRAME_BYTES, age: setAside.ageMs });
}

/**
 * The number of requests set aside that a model keeps in each bucket.
 * @param bytes the model's limit over all buckets
 */
export function setAsideEntries(bytes: number, buckets: number): number {
  return Math.max(1, Math.floor(bytes / buckets / SET_ASIDE_FRAME_BYTES));
}
