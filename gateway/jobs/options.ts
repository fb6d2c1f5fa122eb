/** Reads the options of a job. Refuses each option that Baton does not obey, by its name. */
import { InferenceError } from "#shared/errors.js";
import { isObject } from "#shared/json/members.js";
import type { JsonObject, JsonValue } from "#shared/json/parse.js";
import { labelToken } from "#shared/queue/keys.js";
import { preview } from "../generation/parameters.js";
import type { JobWebhook } from "./webhook.js";

/**
 * The longest time that a job may wait until a worker begins it, in ms. A job without a deadline
 * waits this long.
 */
export const LONGEST_WAIT_MS = 7 * 86_400_000;

/** The priority of a job that names none. */
export const USUAL_PRIORITY = 5;
const LOWEST_PRIORITY = 9;

/** The longest delay of a job, in ms: a year. */
export const LONGEST_DELAY_MS = 366 * 86_400_000;

const MOST_ATTEMPTS = 100;
/** The longest wait before another attempt, in ms. */
const LONGEST_BACKOFF_MS = 86_400_000;
/** The backoff of a job with several attempts that names none. */
const USUAL_BACKOFF: Backoff = { type: "exponential", delay: 1_000, max: 60_000 };

const MOST_LABELS = 16;
const LONGEST_LABEL = 256;
const LEAST_TTL_MS = 1_000;

/** How long a job waits before its next attempt, in ms. */
export interface Backoff {
  /** Each wait is twice the wait before, or all waits are the same. */
  readonly type: "exponential" | "fixed";
  /** The wait before the second attempt. */
  readonly delay: number;
  readonly max: number;
}

/** The options as the job's record has them, in JSON. */
export interface JobOptions {
  /** From 1, which goes first, to 9; null if the body says a level of its model. */
  readonly priority: number | null;
  /** In ms from the first due time, or a time as its client wrote it; null if there is none. */
  readonly deadline: number | string | null;
  /** How long Redis keeps the result, in ms. */
  readonly result_ttl: number;
  readonly labels: Readonly<Record<string, string>>;
  /** Most attempts. */
  readonly attempts: number;
  /** The version of the model that the client named; null if it named none. */
  readonly version: string | null;
  /**
   * After how many ms to queue the job, or at which time as its client wrote it; both absent: at
   * once.
   */
  readonly delay?: number;
  readonly run_at?: string;
  /** Absent if the job has one attempt. */
  readonly backoff?: Backoff;
  /** A receiver of the job's events, in addition to the webhooks of its tenant. */
  readonly webhook?: JobWebhook;
}

export interface TtlTerms {
  /** How long Redis keeps the result of a job that names no time, in ms. */
  readonly resultTtlMs: number;
  /** How long Redis keeps the record of a job after its end, in ms. */
  readonly jobTtlMs: number;
}

const names = ["delay", "run_at", "priority", "deadline", "attempts", "backoff", "result_ttl", "labels", "webhook"];

/**
 * @param version that the path names
 * @param webhook as the caller has read it
 * @throws InferenceError that names the wrong option
 */
export function readOptions(
  given: JsonObject,
  { resultTtlMs, jobTtlMs }: TtlTerms,
  version: string | undefined,
  webhook: JobWebhook | undefined,
): JobOptions {
  for (const name in given) {
    if (!names.includes(name)) {
      throw refused(`unknown member '${name.slice(0, 64)}' of a job; beside its body there are: ${names.join(", ")}`);
    }
  }
  const option = (name: string) => given[name] ?? undefined;
  const attempts = integer(option("attempts"), "attempts", 1, MOST_ATTEMPTS) ?? 1;
  const backoff = readBackoff(option("backoff"));
  const delay = integer(option("delay"), "delay", 0, LONGEST_DELAY_MS);
  const runAt = readInstant(option("run_at"), "run_at");
  if (delay !== undefined && runAt !== undefined)
    throw refused("delay and run_at are both given; a job has at most one of them");
  const usual = Math.min(resultTtlMs, jobTtlMs);
  return {
    priority: integer(option("priority"), "priority", 1, LOWEST_PRIORITY) ?? null,
    deadline: readDeadline(option("deadline")),
    result_ttl: integer(option("result_ttl"), "result_ttl", LEAST_TTL_MS, jobTtlMs) ?? usual,
    labels: readLabels(option("labels")),
    attempts,
    version: version ?? null,
    // Omits absent options, so that a digest under a key from an earlier version still matches.
    ...(delay !== undefined && { delay }),
    ...(runAt !== undefined && { run_at: runAt }),
    ...(attempts > 1 && { backoff }),
    ...(webhook !== undefined && { webhook }),
  };
}

function readInstant(value: JsonValue | undefined, name: string): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "string" && instantOf(value) !== undefined) return value;
  throw refused(`${name} must be a time as 2026-12-01T09:00:00Z, with its zone, got ${preview(value)}`);
}

function readBackoff(value: JsonValue | undefined): Backoff {
  if (value === undefined) return USUAL_BACKOFF;
  if (!isObject(value)) throw refused(`backoff must be an object, got ${preview(value)}`);
  for (const name in value) {
    if (!Object.hasOwn(USUAL_BACKOFF, name)) {
      throw refused(`unknown member '${name.slice(0, 64)}' of backoff; there are: type, delay, max`);
    }
  }
  const type = value["type"] ?? USUAL_BACKOFF.type;
  if (type !== "exponential" && type !== "fixed") {
    throw refused(`backoff.type must be exponential or fixed, got ${preview(type)}`);
  }
  const ms = (name: "delay" | "max") =>
    integer(value[name] ?? undefined, `backoff.${name}`, 1, LONGEST_BACKOFF_MS) ?? undefined;
  const delay = ms("delay") ?? USUAL_BACKOFF.delay;
  const max = ms("max") ?? Math.max(USUAL_BACKOFF.max, delay);
  if (max < delay) throw refused(`backoff.max must be at least backoff.delay, ${delay}, got ${max}`);
  return { type, delay, max };
}

/** The first due time of a job, as its client says; undefined if the job is due at once. */
export type Due = { readonly atMs: number } | { readonly inMs: number } | undefined;

export function dueOf({ delay, run_at: runAt }: Pick<JobOptions, "delay" | "run_at">): Due {
  if (runAt !== undefined) return { atMs: instantOf(runAt) ?? 0 };
  return delay === undefined || delay === 0 ? undefined : { inMs: delay };
}

function readDeadline(value: JsonValue | undefined): number | string | null {
  if (value === undefined) return null;
  if (typeof value !== "string") return integer(value, "deadline", 1, LONGEST_WAIT_MS) ?? null;
  if (instantOf(value) !== undefined) return value;
  throw refused(
    `deadline must be milliseconds from now or a time as 2026-12-01T09:00:00Z, with its zone, got ${preview(value)}`,
  );
}

/**
 * How long a job may wait from now on, in ms.
 * @param now ms since 1970
 * @returns undefined if the deadline has passed
 */
export function waitOf({ deadline }: Pick<JobOptions, "deadline">, now: number): number | undefined {
  if (typeof deadline !== "string") return deadline ?? LONGEST_WAIT_MS;
  const left = (instantOf(deadline) ?? 0) - now;
  return left >= 1 ? left : undefined;
}

/** The options that say when a job may run. */
export type Times = Pick<JobOptions, "deadline" | "delay" | "run_at">;

/**
 * Refuses times that the job cannot keep.
 * @returns how long the job may wait from its first due time, in ms
 * @throws InferenceError
 */
export function checkedWait(times: Times, now: number): number {
  const { deadline, run_at: runAt } = times;
  const due = dueOf(times);
  const dueAt = due === undefined ? now : "atMs" in due ? due.atMs : now + due.inMs;
  if (dueAt < now) throw refused(`run_at must not lie in the past, got ${preview(runAt)}`);
  if (dueAt > now + LONGEST_DELAY_MS) {
    throw refused(`run_at must be at most ${LONGEST_DELAY_MS} ms from now, got ${preview(runAt)}`);
  }
  const wait = waitOf({ deadline }, dueAt);
  if (wait === undefined) {
    const past = waitOf({ deadline }, now) === undefined ? "in the past" : "before the job is due";
    throw refused(`deadline must not lie ${past}, got ${preview(deadline)}`);
  }
  if (wait <= LONGEST_WAIT_MS) return wait;
  const from = due === undefined ? "now" : "when the job is due";
  throw refused(`deadline must be at most ${LONGEST_WAIT_MS} ms from ${from}, got ${preview(deadline)}`);
}

/** RFC 3339: a date and a time with its zone. */
const INSTANT = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})$/;

/** @returns ms since 1970; undefined if the text is not such a time */
export function instantOf(text: string): number | undefined {
  const parts = INSTANT.exec(text);
  if (parts === null) return undefined;
  const ms = Date.parse(text.toUpperCase());
  if (Number.isNaN(ms)) return undefined;
  // `Date.parse` reads 30 February as 2 March.
  const [, year, month, day] = parts.map(Number) as [number, number, number, number];
  return day <= new Date(Date.UTC(year, month, 0)).getUTCDate() ? ms : undefined;
}

function readLabels(value: JsonValue | undefined): Readonly<Record<string, string>> {
  if (value === undefined) return {};
  if (!isObject(value)) throw refused(`labels must be an object, got ${preview(value)}`);
  const labels = Object.entries(value);
  if (labels.length > MOST_LABELS) throw refused(`labels has ${labels.length} members; the most is ${MOST_LABELS}`);
  for (const [name, text] of labels) {
    if (!isLabelName(name)) {
      throw refused(`labels: a name has 1 to 64 letters, digits, _, . and -, got ${preview(name)}`);
    }
    if (typeof text !== "string" || text.length > LONGEST_LABEL) {
      throw refused(`labels.${name} must be a string of at most ${LONGEST_LABEL} characters, got ${preview(text)}`);
    }
  }
  return Object.fromEntries(labels) as Record<string, string>;
}

/**
 * Reads a label such as `team:blue`, by which clients find jobs and their streams. No name has a
 * colon.
 * @throws InferenceError if no job can have such a label
 */
export function readLabel(text: string): Label {
  const [name = "", ...rest] = text.split(":");
  const value = rest.join(":");
  if (isLabelName(name) && rest.length > 0 && value.length <= LONGEST_LABEL) return { name, value };
  throw refused(
    "label must be a name and a value as team:blue, with 1 to 64 letters, digits, _, . and - before the colon and " +
      `at most ${LONGEST_LABEL} characters behind it, got ${preview(text)}`,
  );
}

/** One label of a job. */
export interface Label {
  readonly name: string;
  readonly value: string;
}

/** The tokens of a job's labels in subjects. */
export function tokensOf({ labels }: Pick<JobOptions, "labels">): string[] {
  return Object.entries(labels).map(([name, value]) => labelToken(name, value));
}

function isLabelName(name: string): boolean {
  return /^[\w.-]{1,64}$/.test(name);
}

function integer(value: JsonValue | undefined, name: string, min: number, max: number): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw refused(`${name} must be a whole number from ${min} to ${max}, got ${preview(value)}`);
}

function refused(message: string): InferenceError {
  return new InferenceError("invalid_argument", message);
}
