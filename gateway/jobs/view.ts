/** Renders the view of a job, which a script has computed (`shared/queue/jobs/view.lua`). */
import { readOutcome } from "#shared/contract/outcome.js";
import {
  decodeRequestId,
  encodeRequestId,
  parsePin,
  parseRequestName,
  type RequestAddress,
} from "#shared/queue/address.js";
import type { Stage } from "#shared/queue/pieces/job.js";
import type { NotedJob } from "#shared/queue/pieces/job-events.js";
import type { JobView } from "#shared/queue/jobs/view.js";
import { instantOf, USUAL_PRIORITY, type JobOptions } from "./options.js";
import type { Shown } from "./prepare.js";
import { resultExpiresAt } from "./result.js";

/** The public id of a job, made from the id of its first request. */
export function encodeJobId(job: Omit<RequestAddress, "tenant">): string {
  return `job_${encodeRequestId(job)}`;
}

/** @returns undefined for an id that no gateway made */
export function decodeJobId(tenant: string, id: string): RequestAddress | undefined {
  return id.startsWith("job_") ? decodeRequestId(id.slice("job_".length), tenant) : undefined;
}

/**
 * The stage of a job in its view. A change by this view succeeds only if the job is still at this
 * stage.
 */
export function stageOf({ request, dueAt }: JobView): Stage {
  return { was: request, dueAt };
}

/** The address of the request that runs a job now. */
export function requestOf({ bucket, model }: RequestAddress, { request }: JobView): RequestAddress {
  return { bucket, model, ...parseRequestName(request) };
}

/** The parts of a view that do not come from the job's records. */
export interface Beside {
  /** As JSON; absent if the job has no result, or none that the view shows. */
  readonly result?: string | undefined;
  /**
   * Whether the view shows the job's webhook. One receiver need not know of the other receivers.
   */
  readonly showsWebhook?: boolean;
  /** The secret of the job's own webhook, only for the client that submits the job. */
  readonly secret?: string | undefined;
}

/** The facts of a job that its event does not carry. */
export interface Unnoted {
  /** Undefined if the job is gone: then the view has no result. */
  readonly shown: string | undefined;
  readonly resultBytes: number;
  readonly records: number;
}

/** A job's id and view, for its client. */
export interface ToldJob {
  readonly id: string;
  /** JSON. */
  readonly view: string;
}

const UNKNOWN: Shown = { as: "tensors", id: "", outputs: [] };

/** The view of a job at the time of an event. */
export function viewOfNoted(noted: NotedJob, { shown, resultBytes, records }: Unnoted): JobView {
  const { job, type, options, request, state, made, at, queued, began, ended, pin, keep, failure } = noted;
  const { schedule, tick, run, wait } = noted;
  const how = { name: job, state, type, options, shown: shown ?? JSON.stringify(UNKNOWN), request, made };
  // As in the view, corrects a begin that seems too early, because Redis rounds how long an entry
  // is pending.
  const beganAt = began === undefined ? undefined : Math.max(began, queued ?? 0);
  const times = { recordedAt: at, queuedAt: queued, beganAt, endedAt: ended, leftMs: 0, keptMs: keep };
  const due = {
    dueAt: undefined,
    dueInMs: undefined,
    firstDueAt: run,
    lastAt: wait && (run ?? at) + wait,
    refused: 0,
    seenAt: ended ?? at,
  };
  const body = failure === undefined ? undefined : Buffer.from(failure);
  const ofTick = { schedule, scheduledFor: tick };
  return { ...how, ...times, ...due, ...ofTick, pin, failure: body, position: undefined, resultBytes, records };
}

/**
 * @param job the address of its first request
 * @returns JSON
 */
export function renderView(
  job: RequestAddress,
  view: JobView,
  { result, showsWebhook = false, secret }: Beside,
): string {
  const id = encodeJobId(job);
  const { state, queuedAt, beganAt, endedAt } = view;
  const { priority, deadline, labels, attempts, version: named, webhook } = JSON.parse(view.options) as JobOptions;
  const version = view.pin === "" ? named : parsePin(view.pin).version;
  const head = {
    id,
    object: "job",
    type: view.type,
    model: job.model,
    version,
    state,
    created_at: isoTime(view.recordedAt),
    run_at: isoTime(view.dueAt ?? view.firstDueAt),
    queued_at: isoTime(queuedAt),
    started_at: isoTime(beganAt),
    ended_at: isoTime(endedAt),
    result_expires_at: isoTime(resultExpiresAt(view)),
    attempts,
    attempts_made: hasBegun(view) ? view.made : view.made - 1,
    priority: priority ?? USUAL_PRIORITY,
    deadline: isoTime(deadlineOf(view, deadline)),
    labels,
    position: view.position ?? null,
    progress: progressOf(view),
    schedule: view.schedule ?? null,
    scheduled_for: isoTime(view.scheduledFor),
    request_id: view.request === "" ? null : encodeRequestId(requestOf(job, view)),
  };
  const told = showsWebhook && webhook !== undefined && { webhook: { ...webhook, ...(secret && { secret }) } };
  const tail = { result_url: `/v2/jobs/${id}/result`, error: errorOf(view), ...told };
  // The result is JSON already.
  return `${JSON.stringify(head).slice(0, -1)},"result":${result ?? "null"},${JSON.stringify(tail).slice(1)}`;
}

/** @returns ms since 1970 */
function deadlineOf({ lastAt, queuedAt, recordedAt }: JobView, deadline: JobOptions["deadline"]): number | undefined {
  if (typeof deadline !== "number") return instantOf(deadline ?? "");
  return lastAt ?? (queuedAt ?? recordedAt) + deadline;
}

/** Whether the last request counts as an attempt, as far as the records show. */
function hasBegun({ state, queuedAt, beganAt }: JobView): boolean {
  // A job that waits, or has ended while it waited, has had only requests that have ended.
  if (queuedAt === undefined) return true;
  if (state === "queued") return false;
  return (state !== "expired" && state !== "cancelled") || beganAt !== undefined;
}

/**
 * The progress of a generation. A log record has one token of each choice that is not yet complete,
 * and the last record may have none.
 */
function progressOf({ shown: json, records }: JobView): object | null {
  const shown = JSON.parse(json) as Shown;
  if (shown.as === "tensors") return null;
  const { choices, maxTokens } = shown;
  const most = maxTokens === null ? null : maxTokens * choices;
  return { tokens: Math.min(records * choices, most ?? Infinity), max_tokens: most };
}

function errorOf({ failure }: JobView): object | null {
  if (failure === undefined) return null;
  const outcome = readOutcome("error", failure);
  return outcome.kind === "error" ? { code: outcome.code, message: outcome.message } : null;
}

function isoTime(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}
