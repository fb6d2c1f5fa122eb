/**
 * `/v2/models/<m>[/versions/<v>]/jobs` and `/v2/jobs`: requests whose clients come back for the
 * result.
 */
import { z } from "zod";
import { errorKinds, fixedError, InferenceError, type ErrorCode } from "#shared/errors.js";
import type { JobFilters } from "#shared/queue/jobs/list.js";
import { jobStates, type JobState } from "#shared/queue/jobs/view.js";
import { jobEventTypes } from "#shared/queue/pieces/job-events.js";
import type { TensorPrinter } from "../formats/kserve/tensor-printer.js";
import { jsonReply, jsonTextReply, withHeaders, type Reply } from "../formats/reply.js";
import { jobTypes } from "../jobs/envelope.js";
import { readLabel } from "../jobs/options.js";
import { renderEnd } from "../jobs/render-end.js";
import type { ToldJob } from "../jobs/view.js";
import type { JobBody, JobService } from "../service/jobs.js";
import type { Asked } from "./endpoint/asked.js";
import { endpointsOf } from "./endpoint/endpoint.js";
import { forModel, modelOf } from "./endpoint/model-path.js";
import { listText, longLimit, pageShape } from "./endpoint/page.js";
import { text, type Parameter } from "./endpoint/parameters.js";
import { queueRefusals, runFailures } from "./endpoint/refusals.js";

export interface JobEndpointTerms {
  readonly jobs: JobService;
  /** Prints the tensors of results. */
  readonly printer: TensorPrinter;
}

const endpoint = endpointsOf<JobEndpointTerms>("inference");

const webhookShape = () => {
  const events = z.array(z.enum(jobEventTypes));
  const ownUrl = z.strictObject({ url: z.string(), events, secret: z.string().optional() });
  return z.union([ownUrl, z.strictObject({ id: z.string(), events })]);
};

export const jobShape = () =>
  z.strictObject({
    id: z.string(),
    object: z.literal("job"),
    type: z.enum(jobTypes),
    model: z.string(),
    version: z.string().nullable(),
    state: z.enum(jobStates),
    created_at: z.string(),
    run_at: z.string().nullable(),
    queued_at: z.string().nullable(),
    started_at: z.string().nullable(),
    ended_at: z.string().nullable(),
    result_expires_at: z.string().nullable(),
    attempts: z.number(),
    attempts_made: z.number(),
    priority: z.number(),
    deadline: z.string().nullable(),
    labels: z.record(z.string(), z.string()),
    position: z.number().nullable(),
    progress: z.strictObject({ tokens: z.number(), max_tokens: z.number().nullable() }).nullable(),
    schedule: z.string().nullable(),
    scheduled_for: z.string().nullable(),
    request_id: z.string().nullable(),
    // The answer of the path that answers at once.
    result: z.looseObject({}).nullable(),
    result_url: z.string(),
    error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
    webhook: webhookShape().optional(),
  });

const endedShape = () =>
  z.strictObject({ error: z.string(), code: z.literal("already_ended"), state: z.enum(jobStates) });

export const retryRefusals: readonly ErrorCode[] = ["unknown_job", "job_not_retryable", ...queueRefusals];

const states: Parameter<readonly JobState[] | undefined> = {
  schema: { type: "string", description: `of ${jobStates.join(", ")}, with commas between several` },
  read: ([given]) => given?.split(",").map(readState),
};
const labels: Parameter<JobFilters["labels"]> = {
  schema: { type: "string", description: "a name and a value that the job must have, such as team:blue" },
  repeats: true,
  read: (texts) => (texts.length === 0 ? undefined : texts.map(labelPair)),
};

const submitEndpoints = forModel(
  endpoint({
    method: "POST",
    path: "/v2/models/:model/jobs",
    right: "jobs",
    admits: true,
    does: "Submits a job, whose client comes back for the result.",
    body: "application/json",
    answers: { 202: { says: "The job. Only this answer shows the secret of its webhook.", shape: jobShape } },
    refusals: [...queueRefusals, "url_not_allowed"],
    async handle(asked, { jobs }) {
      const terms = { trace: asked.trace("jobs"), key: asked.idempotencyKey(), budget: asked.budget() };
      const { isReplayed, ...job } = await jobs.submit(asked.caller, modelOf(asked), bodyOf(asked), terms);
      return withHeaders(accepted(job), isReplayed ? { "idempotent-replayed": "true" } : {});
    },
  }),
);

export const jobEndpoints = [
  ...submitEndpoints,
  endpoint({
    method: "GET",
    path: "/v2/jobs",
    right: "read",
    does: "Lists the jobs, the newest first.",
    query: { state: states, model: text, label: labels, schedule: text, limit: longLimit, after: text },
    answers: { 200: { says: "A page of jobs, without their results.", shape: () => pageShape(jobShape()) } },
    async handle({ caller, query }, { jobs }) {
      const { state, label, model, schedule } = query;
      const { data, hasMore, last } = await jobs.list(caller, query, { states: state, model, schedule, labels: label });
      const views = data.map(({ view }) => view);
      return jsonTextReply(listText(views, { first: data.at(0)?.id, last }, hasMore));
    },
  }),
  endpoint({
    method: "GET",
    path: "/v2/jobs/:id",
    right: "read",
    does: "Shows a job, with its result if the result is short.",
    answers: { 200: { says: "The job.", shape: jobShape } },
    refusals: ["unknown_job"],
    handle: async (asked, { jobs }) => jsonTextReply((await jobs.view(asked.caller, asked.segment("id"))).view),
  }),
  endpoint({
    method: "DELETE",
    path: "/v2/jobs/:id",
    right: "cancel",
    does: "Cancels a job.",
    answers: {
      200: { says: "The job, which is cancelled.", shape: jobShape },
      409: { says: "The job had ended otherwise.", shape: endedShape },
    },
    refusals: ["unknown_job"],
    async handle(asked, { jobs }) {
      const { view, state } = await jobs.cancel(asked.caller, asked.segment("id"));
      return state === "cancelled" ? jsonTextReply(view) : endedBefore(state);
    },
  }),
  endpoint({
    method: "GET",
    path: "/v2/jobs/:id/result",
    right: "read",
    does: "Gives the result of a job as the path that answers at once gives it, or the error of a failed job.",
    answers: { 200: { says: "The result: JSON, or JSON and the bytes of tensors behind it.", mediaType: "*/*" } },
    // A job that waits may fail because Baton can no longer queue the job.
    refusals: ["job_not_ended", "result_expired", ...retryRefusals, ...runFailures],
    handle: async (asked, { jobs, printer }) =>
      renderEnd(await jobs.result(asked.caller, asked.segment("id")), printer),
  }),
  endpoint({
    method: "POST",
    path: "/v2/jobs/:id/retry",
    right: "jobs",
    does: "Runs a job that has failed or expired once more.",
    answers: { 202: { says: "The job, which is queued again.", shape: jobShape } },
    refusals: retryRefusals,
    handle: async (asked, { jobs }) => accepted(await jobs.retry(asked.caller, asked.segment("id"))),
  }),
];

export function accepted({ id, view }: ToldJob): Reply {
  return withHeaders(jsonTextReply(view, 202), { location: `/v2/jobs/${id}` });
}

function endedBefore(state: JobState): Reply {
  const { status, texts } = errorKinds.already_ended;
  return jsonReply({ error: texts.usual, code: "already_ended", state }, status);
}

function bodyOf(asked: Asked): JobBody {
  return {
    receive: (read) => asked.body({}, read),
    stillWanted() {
      if (asked.incoming.socket.destroyed) throw fixedError("cancelled", "clientGone");
    },
  };
}

function labelPair(given: string): readonly [name: string, value: string] {
  const { name, value } = readLabel(given);
  return [name, value];
}

function readState(given: string): JobState {
  const state = jobStates.find((one) => one === given);
  if (state !== undefined) return state;
  throw new InferenceError(
    "invalid_argument",
    `state must be of ${jobStates.join(", ")}, with commas between several, not '${given.slice(0, 64)}'`,
  );
}
