/** The records of jobs. */
import { digits, maybe, record, rest, signed, text } from "./record.js";

/** The stage of a job. A call that changes the job names the stage. */
export const stage = record("|", {
  /** Name of the job's request; "" before the first. */
  request: text(),
  /** Redis ms at which a waiting job is due. */
  due: maybe(),
});

/** When a waiting job is due: the field `next` of the job's record (later.lua). */
export const due = record("|", {
  /** Redis ms at which the job is due. */
  at: digits(),
  /**
   * How many requests the job had had by then. The record counts for nothing once the job has had
   * more.
   */
  made: digits(),
});

/** How to try a job again: the field `repeats` of the job's record. */
export const repeats = record(" ", {
  /** How often a request may run the job. */
  attempts: digits(),
  /** Ms before the second attempt. */
  delay: digits(),
  /** The factor of each further delay. */
  factor: digits(),
  /** Ms that the longest delay has. */
  most: digits(),
  /** If the waiting jobs have more bytes than this, there is no further attempt; -1: no limit. */
  budget: signed(),
  /** Codes of errors after which to try again, each with a space behind it. */
  codes: rest(),
});
