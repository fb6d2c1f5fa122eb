/** The records of jobs. */
import { bytes, digits, list, maybe, maybeSigned, maybeText, number, record, rest, signed, text } from "./record.js";

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

/** How a job stands (jobs/view.lua). Times are Redis ms. */
export const jobView = list({
  /** The name of the job (`requestName`), in a list with its model before it. */
  name: text(),
  /**
   * `scheduled`, `queued` or `running`, or as the job has ended: `completed`, `failed`, `cancelled`
   * or `expired`.
   */
  state: text(),
  /** The path that the job's body is for. */
  type: text(),
  /** JSON, as the gateway has noted the options. */
  options: text(),
  /** JSON: how the gateway renders the result. */
  shown: text(),
  /** The name of the request that runs the job now, "" before the first. */
  request: text(),
  /** How many requests the job has had. */
  made: digits(),
  /** Time of the job's record. */
  recordedAt: digits(),
  /**
   * Time of that request's admission; undefined for a job that waits, or has ended while waiting.
   */
  queuedAt: maybe(),
  /** Time of that request's begin; undefined before, and if the time is unknown. */
  beganAt: maybe(),
  /** Time of the end. */
  endedAt: maybe(),
  /** After so many ms no worker begins the job. */
  leftMs: signed(),
  /** As `pinText` writes it. */
  pin: text(),
  /** How long the result is kept, in ms. */
  keptMs: digits(),
  /** The stored body of an error; undefined if the job has not ended with an error. */
  failure: bytes(),
  /**
   * About how many requests are before the job; undefined in a list, or after the job has left the
   * queue.
   */
  position: maybe(),
  /** Bytes of the result. */
  resultBytes: number(),
  /** The number of records in the log. */
  records: number(),
  /** The schedule that has made the job. */
  schedule: maybeText(),
  /** The time of that schedule, in ms since 1970. */
  scheduledFor: maybe(),
  /** When a waiting job is due. */
  dueAt: maybe(),
  /** In how many ms a waiting job is due; negative if it should have been queued already. */
  dueInMs: maybeSigned(),
  /** When the job was first due; undefined if the gateway queued the job at once. */
  firstDueAt: maybe(),
  /** After this none of the job's requests begins; undefined if there is no such time. */
  lastAt: maybe(),
  /** How often put-off.lua has delayed the job since it was due. */
  refused: digits(),
  /** The time of this look. */
  seenAt: digits(),
});
