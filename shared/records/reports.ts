/** The records of reports: what workers have counted, for statistics of the whole fleet. */
import { digits, like, record, text } from "./record.js";

/** A part of the figures of a version: a value of the hashes `reports` and `past`. */
export const report = record("|", {
  /** The version and the part, as `pieces/report.ts` names them. */
  subject: text(),
  /** When the last request ended, in Redis ms; 0 for a part without a time. */
  last: digits(),
  /** Whole numbers with a space between two. A later version of Baton may have further numbers. */
  sums: like("[%d ]+", "0"),
});
