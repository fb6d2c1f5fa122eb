/** `/v2/models/<m>/schedules` and `/v2/schedules`: jobs that Baton submits again and again. */
import { z } from "zod";
import { jsonTextReply, noContent, withHeaders } from "../formats/reply.js";
import { renderSchedule, scheduleStates } from "../schedules/schedule.js";
import type { StoredSchedule } from "../schedules/schedules.js";
import type { ScheduleService } from "../service/schedules.js";
import { endpointsOf } from "./endpoint/endpoint.js";
import { forModel, modelOf } from "./endpoint/model-path.js";
import { listText, pageQuery, pageShape } from "./endpoint/page.js";

const endpoint = endpointsOf<ScheduleService>("inference");

export const scheduleShape = () =>
  z.strictObject({
    id: z.string(),
    object: z.literal("schedule"),
    model: z.string(),
    version: z.string().nullable(),
    cron: z.string().nullable(),
    timezone: z.string().nullable(),
    every: z.number().nullable(),
    start_at: z.string().nullable(),
    end_at: z.string().nullable(),
    limit: z.number().nullable(),
    state: z.enum(scheduleStates),
    created_at: z.string(),
    next_run_at: z.string().nullable(),
    next_runs: z.array(z.string()),
    last_run_at: z.string().nullable(),
    last_job_id: z.string().nullable(),
    runs: z.number(),
    last_error: z.strictObject({ at: z.string(), code: z.string(), message: z.string() }).nullable(),
    // The job as the client has sent it.
    job: z.looseObject({}),
  });

const makeEndpoints = forModel(
  endpoint({
    method: "POST",
    path: "/v2/models/:model/schedules",
    right: "jobs",
    does: "Makes a schedule, which submits its job at each of its times.",
    body: "application/json",
    answers: { 201: { says: "The schedule.", shape: scheduleShape } },
    refusals: [
      "unknown_model",
      "model_unavailable",
      "data_shape_mismatch",
      "url_not_allowed",
      "schedule_limit",
      "idempotency_mismatch",
      "unknown_schedule",
      "outcome_unknown",
    ],
    async handle(asked, schedules) {
      const terms = { trace: asked.trace("jobs"), key: asked.idempotencyKey() };
      const model = modelOf(asked);
      const target = await schedules.target(asked.caller, model);
      const read = await asked.body({}, (bytes) => schedules.read(target, bytes));
      const made = await schedules.make(asked.caller, target, read, terms);
      return withHeaders(jsonTextReply(viewOf(made), 201), {
        location: `/v2/schedules/${made.schedule.id}`,
        ...(made.isReplayed && { "idempotent-replayed": "true" }),
      });
    },
  }),
);

export const scheduleEndpoints = [
  ...makeEndpoints,
  endpoint({
    method: "GET",
    path: "/v2/schedules",
    right: "read",
    does: "Lists the schedules, the newest first.",
    query: pageQuery,
    answers: { 200: { says: "A page of schedules.", shape: () => pageShape(scheduleShape()) } },
    async handle({ caller, query }, schedules) {
      const { data, hasMore } = await schedules.list(caller, query);
      const ids = { first: data.at(0)?.schedule.id, last: data.at(-1)?.schedule.id };
      return jsonTextReply(listText(data.map(viewOf), ids, hasMore));
    },
  }),
  endpoint({
    method: "GET",
    path: "/v2/schedules/:id",
    right: "read",
    does: "Shows a schedule.",
    answers: { 200: { says: "The schedule.", shape: scheduleShape } },
    refusals: ["unknown_schedule"],
    handle: async (asked, schedules) => jsonTextReply(viewOf(await schedules.view(asked.caller, asked.segment("id")))),
  }),
  endpoint({
    method: "DELETE",
    path: "/v2/schedules/:id",
    right: "jobs",
    does: "Removes a schedule. The jobs that it has made stay.",
    answers: { 204: { says: "The schedule is gone." } },
    refusals: ["unknown_schedule", "outcome_unknown"],
    async handle(asked, schedules) {
      await schedules.remove(asked.caller, asked.segment("id"));
      return noContent;
    },
  }),
  endpoint({
    method: "POST",
    path: "/v2/schedules/:id/pause",
    right: "jobs",
    does: "Pauses a schedule, so that it makes no jobs until a client resumes it.",
    answers: { 200: { says: "The schedule, which is paused.", shape: scheduleShape } },
    refusals: ["unknown_schedule", "schedule_ended", "outcome_unknown"],
    handle: async (asked, schedules) => jsonTextReply(viewOf(await schedules.pause(asked.caller, asked.segment("id")))),
  }),
  endpoint({
    method: "POST",
    path: "/v2/schedules/:id/resume",
    right: "jobs",
    does: "Resumes a paused schedule, which does not make up for the times in the pause.",
    answers: { 200: { says: "The schedule, which has ended if no time is left.", shape: scheduleShape } },
    refusals: ["unknown_schedule", "schedule_ended", "unknown_model", "outcome_unknown"],
    handle: async (asked, schedules) =>
      jsonTextReply(viewOf(await schedules.resume(asked.caller, asked.segment("id")))),
  }),
];

function viewOf({ schedule, job }: StoredSchedule): string {
  return renderSchedule(schedule, job);
}
