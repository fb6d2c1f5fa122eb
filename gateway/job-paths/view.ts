/** Renders how a job stands, from what its two records say. */
import { readOutcome } from "#shared/contract/outcome.js";
import { encodeRequestId, parsePin, parseRequestName, type RequestAddress } from "#shared/queue/address.js";
import type { JobView } from "#shared/queue/jobs/view.js";
import { instantOf, USUAL_PRIORITY, type JobOptions } from "./options.js";
import type { Shown } from "./prepare.js";
import { resultExpiresAt } from "./result.js";

/** The public id of a job, which is made of that of its first request. */
export function encodeJobId(job: Omit<RequestAddress, "tenant">): string {
  return `job_${encodeRequestId(job)}`;
}

/** The address of the request that runs a job now. */
export function requestOf({ bucket, model }: RequestAddress, { request }: JobView): RequestAddress {
  return { bucket, model, ...parseRequestName(request) };
}

/**
 * @param job the address of its first request
 * @param result as JSON; undefined where it has none, or none that is told here
 * @returns JSON
 */
export function renderView(job: RequestAddress, view: JobView, result: string | undefined): string {
  const id = encodeJobId(job);
  const { state, queuedAt, beganAt, endedAt } = view;
  const { priority, deadline, labels, attempts } = JSON.parse(view.options) as JobOptions;
  const { version } = parsePin(view.pin);
  const head = {
    id,
    object: "job",
    type: view.type,
    model: job.model,
    version,
    state,
    created_at: isoTime(view.recordedAt),
    run_at: null,
    queued_at: isoTime(queuedAt),
    started_at: isoTime(beganAt),
    ended_at: isoTime(endedAt),
    result_expires_at: isoTime(resultExpiresAt(view)),
    attempts,
    attempts_made: hasBegun(view) ? view.made : view.made - 1,
    priority: priority ?? USUAL_PRIORITY,
    deadline: isoTime(typeof deadline === "number" ? queuedAt + deadline : instantOf(deadline ?? "")),
    labels,
    position: view.position ?? null,
    progress: progressOf(view),
    schedule: null,
    scheduled_for: null,
    request_id: encodeRequestId(requestOf(job, view)),
  };
  const tail = { result_url: `/v2/jobs/${id}/result`, error: errorOf(view) };
  // The result is JSON already.
  return `${JSON.stringify(head).slice(0, -1)},"result":${result ?? "null"},${JSON.stringify(tail).slice(1)}`;
}

/** Whether the request that runs the job now was begun, as far as anybody knows. */
function hasBegun({ state, beganAt }: JobView): boolean {
  if (state === "queued" || state === "expired") return false;
  return state !== "cancelled" || beganAt !== undefined;
}

/**
 * How far a generation is. A record has one token of each choice that still goes on, and the last
 * one may have none.
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
