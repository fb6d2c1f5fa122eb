/**
 * What a schedule is, as it lies in Redis and as its tenant reads it, and how it goes from one time
 * to the next (pure). All times are those of Redis.
 */
import { z } from "zod";
import { newestTick, take, tickAfter, ticksAfter, type Rhythm } from "./ticks.js";

export const scheduleStates = ["active", "paused", "ended"] as const;

const instant = z.int();
const facts = z.strictObject({
  id: z.string(),
  tenant: z.string(),
  model: z.string(),
  /** That its client named; null: the latest at each time. */
  version: z.string().nullable(),
  rhythm: z.union([
    z.strictObject({ cron: z.string(), timezone: z.string() }),
    z.strictObject({ every: z.int(), anchor: instant }),
  ]),
  startAt: instant.nullable(),
  endAt: instant.nullable(),
  /** Most jobs that it makes. */
  limit: z.int().nullable(),
  createdAt: instant,
  state: z.enum(scheduleStates),
  /** The first of its times that was neither carried out nor missed; null unless it is active. */
  next: instant.nullable(),
  /** The time whose job somebody is submitting, or was when they died. */
  firing: instant.nullable(),
  /** How many jobs it has made, the newest one, and the time of that. */
  runs: z.int(),
  lastJob: z.string().nullable(),
  lastTick: instant.nullable(),
  /** Why the last of its times made no job; null where it did. */
  error: z.strictObject({ at: instant, code: z.string(), message: z.string() }).nullable(),
});

export type Schedule = Readonly<z.infer<typeof facts>>;

export function scheduleText(schedule: Schedule): string {
  return JSON.stringify(schedule);
}

/** Thrown for what this version cannot read. A newer one beside it may have made it. */
export class UnreadableScheduleError extends Error {
  override readonly name = "UnreadableScheduleError";
}

/**
 * The inverse of `scheduleText`.
 * @throws UnreadableScheduleError for what is none
 */
export function parseSchedule(text: string): Schedule {
  try {
    return facts.parse(JSON.parse(text));
  } catch (cause) {
    throw new UnreadableScheduleError("a schedule cannot be read: another version of Baton may have made it", {
      cause,
    });
  }
}

/** What a client asks for. */
export type AskedSchedule = Pick<Schedule, "model" | "version" | "startAt" | "endAt" | "limit"> & {
  readonly rhythm: { readonly cron: string; readonly timezone: string } | { readonly every: number };
};

/** A new schedule; it has ended already where none of its times is left. */
export function newSchedule(asked: AskedSchedule, name: Pick<Schedule, "id" | "tenant">, now: number): Schedule {
  const rhythm: Rhythm =
    "every" in asked.rhythm
      ? { every: asked.rhythm.every, anchor: asked.startAt ?? now + asked.rhythm.every }
      : asked.rhythm;
  const none = { next: null, firing: null, runs: 0, lastJob: null, lastTick: null, error: null };
  return goingOn({ ...asked, ...name, rhythm, createdAt: now, state: "active", ...none }, now);
}

/** Goes on with its first time after `after`, or ends. */
function goingOn(schedule: Schedule, after: number): Schedule {
  const { rhythm, startAt, endAt, limit, runs } = schedule;
  const tick = limit === null || runs < limit ? tickAfter(rhythm, Math.max(after, (startAt ?? 0) - 1)) : undefined;
  if (tick === undefined || tick > (endAt ?? Infinity)) return { ...schedule, state: "ended", next: null };
  return { ...schedule, next: tick };
}

export function paused(schedule: Schedule): Schedule {
  return schedule.state === "active" ? { ...schedule, state: "paused", next: null } : schedule;
}

/** What was missed in the pause is not made up for. */
export function resumed(schedule: Schedule, now: number): Schedule {
  return schedule.state === "paused" ? goingOn({ ...schedule, state: "active" }, now) : schedule;
}

/**
 * The time that is to be carried out now: the newest that has come, since of several that were
 * missed only the newest counts. Undefined where none has come.
 */
export function dueTick({ rhythm, next, endAt, state }: Schedule, now: number): number | undefined {
  if (state !== "active" || next === null || next > now) return undefined;
  return newestTick(rhythm, next, Math.min(now, endAt ?? Infinity)) ?? next;
}

/** Until when a time may be carried out that could not be so far: then the next one comes. */
export function triedUntil({ rhythm }: Schedule, tick: number): number {
  return tickAfter(rhythm, tick) ?? Infinity;
}

/** Somebody is about to submit the job of this time. */
export function fired(schedule: Schedule, tick: number): Schedule {
  return { ...schedule, firing: tick };
}

/** The job of this time is there. */
export function withRun(schedule: Schedule, tick: number, job: string): Schedule {
  if (schedule.firing !== tick) return schedule; // another process has said so
  const runs = schedule.runs + 1;
  return passed({ ...schedule, runs, lastJob: job, lastTick: tick, error: null }, tick);
}

/** No job of this time will be there. */
export function withMiss(schedule: Schedule, tick: number, error: Schedule["error"]): Schedule {
  return schedule.firing === tick ? passed({ ...schedule, error: error ?? schedule.error }, tick) : schedule;
}

function passed(schedule: Schedule, tick: number): Schedule {
  const { state, next } = schedule;
  const rest = { ...schedule, firing: null };
  // It may have been paused meanwhile, and may go on since.
  return state === "active" ? goingOn(rest, Math.max(tick, (next ?? 0) - 1)) : rest;
}

/** Times of a schedule that are shown. */
const SHOWN = 5;

/**
 * As its tenant reads it.
 * @param job as its client has sent it
 * @returns JSON
 */
export function renderSchedule(schedule: Schedule, job: Buffer): string {
  const { id, model, version, rhythm, startAt, endAt, limit, createdAt, state, next, runs, lastJob, lastTick } =
    schedule;
  const { error } = schedule;
  const left = Math.min(SHOWN, (limit ?? Infinity) - runs);
  const coming =
    next === null ? [] : take(ticksAfter(rhythm, next - 1), left).filter((tick) => tick <= (endAt ?? Infinity));
  const head = {
    id,
    object: "schedule",
    model,
    version,
    cron: "cron" in rhythm ? rhythm.cron : null,
    timezone: "cron" in rhythm ? rhythm.timezone : null,
    every: "every" in rhythm ? rhythm.every : null,
    start_at: isoTime(startAt),
    end_at: isoTime(endAt),
    limit,
    state,
    created_at: isoTime(createdAt),
    next_run_at: isoTime(next),
    next_runs: coming.map(isoTime),
    last_run_at: isoTime(lastTick),
    last_job_id: lastJob,
    runs,
    last_error: error && { at: isoTime(error.at), code: error.code, message: error.message },
  };
  // The job is JSON already.
  return `${JSON.stringify(head).slice(0, -1)},"job":${job.toString("utf8")}}`;
}

function isoTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
