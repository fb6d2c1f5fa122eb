/** `/v2/dead`: requests that workers have set aside. */
import { z } from "zod";
import { jsonReply } from "../formats/reply.js";
import type { DeadService } from "../service/dead.js";
import { endpointsOf } from "./endpoint/endpoint.js";
import { accepted, jobShape, retryRefusals } from "./jobs.js";
import { listOf, longLimit, pageShape } from "./endpoint/page.js";
import { text } from "./endpoint/parameters.js";

const endpoint = endpointsOf<DeadService>("inference");

export const deadShape = () =>
  z.strictObject({
    id: z.string(),
    object: z.literal("dead_request"),
    model: z.string(),
    reason: z.string(),
    runs: z.number(),
    set_aside_at: z.string(),
    request_id: z.string().nullable(),
    job: z.string().nullable(),
    sequence_id: z.union([z.number(), z.string()]).nullable(),
    step: z.number().nullable(),
    bytes: z.number(),
  });

export const deadEndpoints = [
  endpoint({
    method: "GET",
    path: "/v2/dead",
    right: "operator",
    does: "Lists the requests that were set aside, the newest first.",
    query: { model: text, limit: longLimit, after: text },
    answers: { 200: { says: "A page of requests.", shape: () => pageShape(deadShape()) } },
    async handle({ caller, query }, dead) {
      const { data, hasMore, last } = await dead.list(caller, query, query.model);
      return jsonReply({ ...listOf(data, hasMore), last_id: last ?? null });
    },
  }),
  endpoint({
    method: "GET",
    path: "/v2/dead/:id",
    right: "operator",
    does: "Shows a request that was set aside.",
    answers: { 200: { says: "The request.", shape: deadShape } },
    refusals: ["unknown_dead"],
    handle: async (asked, dead) => jsonReply(await dead.view(asked.caller, asked.segment("id"))),
  }),
  endpoint({
    method: "POST",
    path: "/v2/dead/:id/retry",
    right: "operator",
    does: "Runs the job of a request that was set aside once more, and forgets the request.",
    answers: { 202: { says: "The job, which is queued again.", shape: jobShape } },
    refusals: ["unknown_dead", "dead_not_retryable", ...retryRefusals],
    handle: async (asked, dead) => accepted(await dead.retry(asked.caller, asked.segment("id"))),
  }),
];
