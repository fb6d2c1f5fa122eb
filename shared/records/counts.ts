/** The records of the counts of the queue. */
import { digits, number, record, rest } from "./record.js";

/** A sum: a field of the hash `load:…`. */
export const load = record(" ", {
  /**
   * How many requests; results for the field `kept`, jobs for `later`, sequences for
   * `s:<model>`.
   */
  items: number(),
  /**
   * Bytes of all of them. For `s:<model>`, the Redis ms until which that number counts as exact
   * enough.
   */
  bytes: number(),
});

/** A member of the sorted sets `kept:…` and `later:…`. */
export const sized = record("|", {
  /** What the member counts in the sum. */
  bytes: digits(),
  /** A request as in `open:…`, the key of a job's record, or a waiting job as in its key. */
  name: rest(),
});
