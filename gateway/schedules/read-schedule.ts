/**
 * Reads the schedule that a client asks for. Refuses each member that Baton does not obey, by its
 * name.
 */
import { InferenceError } from "#shared/errors.js";
import { asSize, asString, invalidJson, isObject, parseRequestJson, withoutOthers } from "#shared/json/members.js";
import { JsonError } from "#shared/json/error.js";
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import { rootMembers } from "#shared/json/root-members.js";
import { readEnvelope } from "../jobs/envelope.js";
import { instantOf } from "../jobs/options.js";
import { cronFault } from "./ticks.js";
import { newSchedule, type AskedSchedule } from "./schedule.js";
import { zoneOf } from "./zone.js";

export interface ReadSchedule {
  readonly asked: AskedSchedule;
  /** A copy of the job, as the client has sent it. */
  readonly job: Buffer;
}

const names = ["cron", "timezone", "every", "start_at", "end_at", "limit", "job"];
const LEAST_EVERY_MS = 1_000;
const DAY_MS = 86_400_000;
const MOST_EVERY_MS = 366 * DAY_MS;
/** Refuses a time further away than this as a typing error. */
const FURTHEST_MS = 20 * MOST_EVERY_MS;
const MOST_RUNS = 1_000_000_000;

/**
 * @param now Redis ms
 * @throws InferenceError that names the wrong member
 */
export function readSchedule(
  bytes: Buffer,
  { model, version }: { readonly model: string; readonly version: string | undefined },
  now: number,
): ReadSchedule {
  const members = split(bytes);
  const job = members.get("job");
  if (job === undefined) throw refused("job is missing: what is submitted each time, as for POST …/jobs");
  members.delete("job");
  const text = `{${[...members].map(([name, value]) => `${JSON.stringify(name)}:${value.toString("utf8")}`).join(",")}}`;
  const given = withoutNulls(withoutOthers(parseRequestJson(Buffer.from(text)), names));
  const { start_at: start, end_at: end, limit } = given;
  const asked = {
    model,
    version: version ?? null,
    rhythm: readRhythm(given),
    startAt: start === undefined ? null : readTime(start, "start_at", now),
    endAt: end === undefined ? null : readTime(end, "end_at", now),
    limit: limit === undefined ? null : readLimit(limit),
  };
  checkJob(job);
  checkTimes(asked, now);
  return { asked, job: Buffer.from(job) };
}

function split(bytes: Buffer): Map<string, Buffer> {
  try {
    return rootMembers(bytes);
  } catch (error) {
    if (error instanceof JsonError) throw invalidJson(error.message, error);
    throw error;
  }
}

/** A null member counts as absent, because the view shows absent members as null. */
function withoutNulls(given: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
}

function readRhythm({ cron: expression, timezone, every: interval }: JsonObject): AskedSchedule["rhythm"] {
  if ((expression === undefined) === (interval === undefined)) {
    throw refused("a schedule has either cron, an expression of five fields, or every, in milliseconds");
  }
  if (interval !== undefined) {
    if (timezone !== undefined) throw refused("timezone goes with cron, not with every");
    const every = asSize(interval, "every");
    if (every >= LEAST_EVERY_MS && every <= MOST_EVERY_MS) return { every };
    throw refused(`every must be a whole number of milliseconds from ${LEAST_EVERY_MS} to ${MOST_EVERY_MS}`);
  }
  const cron = asString(expression ?? null, "cron");
  const fault = cronFault(cron);
  if (fault !== undefined) throw refused(`cron is no expression that comes true: ${fault}`);
  const zone = timezone === undefined ? "UTC" : asString(timezone, "timezone");
  if (zoneOf(zone) !== undefined) return { cron, timezone: zone };
  throw refused(`timezone must be a name such as Europe/Berlin, not '${zone.slice(0, 64)}'`);
}

function readTime(value: JsonValue, name: string, now: number): number {
  const text = asString(value, name);
  const ms = instantOf(text);
  if (ms === undefined) {
    throw refused(`${name} must be a time as 2026-12-01T09:00:00Z, with its zone, not '${text.slice(0, 64)}'`);
  }
  if (Math.abs(ms - now) <= FURTHEST_MS) return ms;
  throw refused(`${name} must lie within twenty years of now, not '${text}'`);
}

function readLimit(value: JsonValue): number {
  const limit = asSize(value, "limit");
  if (limit >= 1 && limit <= MOST_RUNS) return limit;
  throw refused(`limit must be a whole number from 1 to ${MOST_RUNS}`);
}

function checkTimes(asked: AskedSchedule, now: number): void {
  const { startAt, endAt } = asked;
  if (endAt !== null && endAt <= now) throw refused("end_at must not lie in the past");
  if (endAt !== null && startAt !== null && endAt < startAt) throw refused("end_at must not lie before start_at");
  const { state } = newSchedule(asked, { id: "", tenant: "" }, now);
  if (state === "ended") throw refused("none of its times comes before end_at");
}

/**
 * Refuses options of a job that have no meaning, or a harmful meaning, in a schedule. The caller
 * checks all other options as for a job that a client submits now.
 */
function checkJob(job: Buffer): void {
  const { options } = readEnvelope(job);
  for (const name of ["delay", "run_at"]) {
    if (options[name] !== undefined) throw refused(`job.${name} is not for schedules: their times are their own`);
  }
  if (typeof options["deadline"] === "string") {
    throw refused("job.deadline must be milliseconds, counted anew at each time, since a date comes only once");
  }
  const { webhook } = options;
  if (isObject(webhook) && webhook["secret"] !== undefined) {
    throw refused("job.webhook.secret would be shown with the schedule: make a webhook, and name its id");
  }
}

function refused(message: string): InferenceError {
  return new InferenceError("invalid_argument", message);
}
