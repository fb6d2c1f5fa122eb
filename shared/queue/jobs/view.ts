/** How a job stands, as view.lua tells it. */
import { integer, list, text, word } from "../../redis/script.js";

/** The states in which a job is; it ends in one of the last four. */
export const jobStates = ["scheduled", "queued", "running", "completed", "failed", "cancelled", "expired"] as const;

export type JobState = (typeof jobStates)[number];

/** Times are Redis ms. */
export interface JobView {
  /** The name of the job (`requestName`), in a list with its model before it. */
  readonly name: string;
  readonly state: JobState;
  readonly type: string;
  /** JSON, as they were noted. */
  readonly options: string;
  readonly shown: string;
  /** The name of the request that runs it now, "" before the first, and how many it has had. */
  readonly request: string;
  readonly made: number;
  readonly recordedAt: number;
  /** When that request was admitted, begun and ended; a job that waits for its time has none. */
  readonly queuedAt: number | undefined;
  readonly beganAt: number | undefined;
  readonly endedAt: number | undefined;
  /** After so many ms it is not begun any more. */
  readonly leftMs: number;
  /** As `pinText` has it. */
  readonly pin: string;
  /** How long its result is kept, in ms. */
  readonly keptMs: number;
  /** The stored body of an error; undefined where it has not ended with one. */
  readonly failure: Buffer | undefined;
  /**
   * About how many requests are before it; undefined where it is not queued, or told in a list.
   */
  readonly position: number | undefined;
  /** How many bytes of a result are there, and how many records its log has. */
  readonly resultBytes: number;
  readonly records: number;
  /** The schedule that has made it, and for which of its times, in ms since 1970. */
  readonly schedule: string | undefined;
  readonly scheduledFor: number | undefined;
  /** When it is due, if it waits for that, and in how many ms. */
  readonly dueAt: number | undefined;
  readonly dueInMs: number | undefined;
  /** When it was first due; undefined where it was queued at once. */
  readonly firstDueAt: number | undefined;
  /** When it is not begun any more, whichever request runs it; undefined where nothing says so. */
  readonly lastAt: number | undefined;
  /** How often it was put off since it was due. */
  readonly refused: number;
  /** When it stood so. */
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
    // Redis rounds the time since then for itself.
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
