/** How a job stands, as view.lua reads it. */
import { integer, list, text, word } from "../../redis/script.js";

/** The states of a job; it ends in one of the last four. */
export const jobStates = ["scheduled", "queued", "running", "completed", "failed", "cancelled", "expired"] as const;

export type JobState = (typeof jobStates)[number];

/** Times are Redis ms. */
export interface JobView {
  /** The name of the job (`requestName`), in a list with its model before it. */
  readonly name: string;
  readonly state: JobState;
  readonly type: string;
  /** JSON, as the gateway has noted both. */
  readonly options: string;
  readonly shown: string;
  /**
   * The name of the request that runs the job now, "" before the first, and how many it has had.
   */
  readonly request: string;
  readonly made: number;
  readonly recordedAt: number;
  /**
   * Times of that request's admission, begin and end; undefined while the job waits for its time.
   */
  readonly queuedAt: number | undefined;
  readonly beganAt: number | undefined;
  readonly endedAt: number | undefined;
  /** After so many ms no worker begins the job. */
  readonly leftMs: number;
  /** As `pinText` writes it. */
  readonly pin: string;
  /** How long the result is kept, in ms. */
  readonly keptMs: number;
  /** The stored body of an error; undefined if the job has not ended with an error. */
  readonly failure: Buffer | undefined;
  /**
   * About how many requests are before the job; undefined in a list, or after the job has left the
   * queue.
   */
  readonly position: number | undefined;
  /** Bytes of the result, and the number of records in the log. */
  readonly resultBytes: number;
  readonly records: number;
  /** The schedule that has made the job, and the time of that schedule, in ms since 1970. */
  readonly schedule: string | undefined;
  readonly scheduledFor: number | undefined;
  /** When a waiting job is due, and in how many ms. */
  readonly dueAt: number | undefined;
  readonly dueInMs: number | undefined;
  /** When the job was first due; undefined if the gateway queued the job at once. */
  readonly firstDueAt: number | undefined;
  /** After this none of the job's requests begins; undefined if there is no such time. */
  readonly lastAt: number | undefined;
  /** How often put-off.lua has delayed the job since it was due. */
  readonly refused: number;
  /** The time of this look. */
  readonly seenAt: number;
}

/** Decodes a view. */
export function viewOf(reply: unknown): JobView {
  const [name, state, type, options, shown, request, made, at, queued, began, ended, due, pin, kept, failure, ...rest] =
    list(reply);
  const [place, resultBytes, records, schedule, tick, dueAt, dueIn, firstDue, last, refused, seen] = rest;
  return {
    name: text(name),
    state: word(state, jobStates),
    type: text(type),
    options: text(options),
    shown: text(shown),
    request: text(request),
    made: integer(made),
    recordedAt: integer(at),
    queuedAt: optional(queued),
    // Redis rounds the time since then by itself.
    beganAt: text(began) === "" ? undefined : Math.max(integer(began), optional(queued) ?? 0),
    endedAt: optional(ended),
    leftMs: integer(due),
    pin: text(pin),
    keptMs: integer(kept),
    failure: text(failure) === "" ? undefined : (failure as Buffer),
    position: optional(place),
    resultBytes: integer(resultBytes),
    records: integer(records),
    schedule: text(schedule) === "" ? undefined : text(schedule),
    scheduledFor: optional(tick),
    dueAt: optional(dueAt),
    dueInMs: optional(dueIn),
    firstDueAt: optional(firstDue),
    lastAt: optional(last),
    refused: integer(refused),
    seenAt: integer(seen),
  };
}

function optional(reply: unknown): number | undefined {
  return text(reply) === "" ? undefined : integer(reply);
}
