/**
 * The record of a schedule in Redis, its view for the tenant, and its steps from one time to the
 * next (pure). All times are by Redis's clock.
 */
import { z } from "zod";
import { newestTick, take, tickAfter, ticksAfter, type Rhythm } from "./ticks.js";

export const scheduleStates = ["active", "paused", "ended"] as const;

const instant = z.int();
const facts = z.strictObject({
  id: z.string(),
  tenant: z.string(),
  model: z.string(),
  /** The version that the client named; null for the latest version at each time. */
  version: z.string().nullable(),
  rhythm: z.union([
    z.strictObject({ cron: z.string(), timezone: z.string() }),
    z.strictObject({ every: z.int(), anchor: instant }),
  ]),
  startAt: instant.nullable(),
  endAt: instant.nullable(),
  /** Most jobs that the schedule makes. */
  limit: z.int().nullable(),
  createdAt: instant,
  state: z.enum(scheduleStates),
  /** The first time that the schedule has neither run nor missed; null unless it is active. */
  next: instant.nullable(),
  /** The time whose job a process is submitting, or was submitting when it died. */
  firing: instant.nullable(),
  /** The number of jobs made, the newest job, and the time of the newest job. */
  runs: z.int(),
  lastJob: z.string().nullable(),
  lastTick: instant.nullable(),
  /** Why the last time made no job; null if it made a job. */
  error: z.strictObject({ at: instant, code: z.string(), message: z.string() }).nullable(),
});

export type Schedule = Readonly<z.infer<typeof facts>>;

export function scheduleText(schedule: Schedule): string {
  return JSON.stringify(schedule);
}

/** Thrown for a text that this version cannot read. A newer version may have written the text. */
export class UnreadableScheduleError extends Error {
  override readonly name = "UnreadableScheduleError";
}

/**
 * The inverse of `scheduleText`.
 * @throws UnreadableScheduleError for any other text
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

/** The schedule that a client asks for. */
export type AskedSchedule = Pick<Schedule, "model" | "version" | "startAt" | "endAt" | "limit"> & {
  readonly rhythm: { readonly cron: string; readonly timezone: string } | { readonly every: number };
};

/** A new schedule, which has ended already if no time is left. */
export function newSchedule(asked: AskedSchedule, name: Pick<Schedule, "id" | "tenant">, now: number): Schedule {
  const rhythm: Rhythm =
    "every" in asked.rhythm
      ? { every: asked.rhythm.every, anchor: asked.startAt ?? now + asked.rhythm.every }
      : asked.rhythm;
  const none = { next: null, firing: null, runs: 0, lastJob: null, lastTick: null, error: null };
  return goingOn({ ...asked, ...name, rhythm, createdAt: now, state: "active", ...none }, now);
}

/** Continues with the first time after `after`, or ends. */
function goingOn(schedule: Schedule, after: number): Schedule {
  const { rhythm, startAt, endAt, limit, runs } = schedule;
  const tick = limit === null || runs < limit ? tickAfter(rhythm, Math.max(after, (startAt ?? 0) - 1)) : undefined;
  if (tick === undefined || tick > (endAt ?? Infinity)) return { ...schedule, state: "ended", next: null };
  return { ...schedule, next: tick };
}

export function paused(schedule: Schedule): Schedule {
  return schedule.state === "active" ? { ...schedule, state: "paused", next: null } : schedule;
}

/** Resumes a paused schedule, which does not make up for the times in the pause. */
export function resumed(schedule: Schedule, now: number): Schedule {
  return schedule.state === "paused" ? goingOn({ ...schedule, state: "active" }, now) : schedule;
}

/**
 * The time whose job to submit now; undefined if no time has come. If several times have come, only
 * the newest counts.
 */
export function dueTick({ rhythm, next, endAt, state }: Schedule, now: number): number | undefined {
  if (state !== "active" || next === null || next > now) return undefined;
  return newestTick(rhythm, next, Math.min(now, endAt ?? Infinity)) ?? next;
}

/** Until when a process tries again to submit the job of a time: until the next time. */
export function triedUntil({ rhythm }: Schedule, tick: number): number {
  return tickAfter(rhythm, tick) ?? Infinity;
}

/** Notes that a process is about to submit the job of this time. */
export function fired(schedule: Schedule, tick: number): Schedule {
  return { ...schedule, firing: tick };
}

/** Notes that the job of this time exists. */
export function withRun(schedule: Schedule, tick: number, job: string): Schedule {
  if (schedule.firing !== tick) return schedule; // another process has noted that
  const runs = schedule.runs + 1;
  return passed({ ...schedule, runs, lastJob: job, lastTick: tick, error: null }, tick);
}

/** Notes that this time makes no job. */
export function withMiss(schedule: Schedule, tick: number, error: Schedule["error"]): Schedule {
  return schedule.firing === tick ? passed({ ...schedule, error: error ?? schedule.error }, tick) : schedule;
}

function passed(schedule: Schedule, tick: number): Schedule {
  const { state, next } = schedule;
  const rest = { ...schedule, firing: null };
  // A client may have paused the schedule meanwhile, and may also have resumed it.
  return state === "active" ? goingOn(rest, Math.max(tick, (next ?? 0) - 1)) : rest;
}

/** Coming times that the view shows. */
const SHOWN = 5;

/**
 * Renders a schedule for its tenant.
 * @param job as the client has sent it
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
