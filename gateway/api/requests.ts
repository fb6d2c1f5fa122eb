/** `/v2/requests/<id>`: the status of a request, and its end on the client's behalf. */
import { z } from "zod";
import { errorKinds } from "#shared/errors.js";
import { jsonReply, jsonTextReply, noContent, type Reply } from "../formats/reply.js";
import { openStates } from "../requests/open-requests.js";
import { requestStates, type RequestState } from "../requests/status.js";
import type { RequestService } from "../service/requests.js";
import { endpointsOf } from "./endpoint/endpoint.js";
import { forModel, modelOf } from "./endpoint/model-path.js";
import { oneOf, pageSize, text, ticketParameter } from "./endpoint/parameters.js";

const endpoint = endpointsOf<RequestService>("inference");

/** The text of a generator's request, as far as the request has come. */
const generated = () => ({
  choices: z.array(
    z.strictObject({ index: z.number(), text: z.string(), finish_reason: z.enum(["stop", "length"]).nullable() }),
  ),
  usage: z.strictObject({ prompt_tokens: z.number(), completion_tokens: z.number() }).optional(),
});

const failureShape = () => {
  const { choices, usage } = generated();
  const error = { error: z.string(), code: z.string(), reason: z.string().optional() };
  return z.strictObject({ ...error, choices: choices.optional(), usage });
};

const tensorsShape = () =>
  z.strictObject({
    model_name: z.string(),
    model_version: z.string(),
    parameters: z.strictObject({ sequence_step: z.number() }).optional(),
    outputs: z.array(
      z.strictObject({
        name: z.string(),
        datatype: z.string(),
        shape: z.array(z.number()),
        data: z.array(z.unknown()),
      }),
    ),
  });

export const statusShape = () =>
  z.strictObject({
    id: z.string(),
    model_name: z.string(),
    model_version: z.string(),
    subject: z.string().optional(),
    state: z.enum(requestStates),
    admitted_at: z.string().nullable(),
    began_at: z.string().nullable(),
    ended_at: z.string().nullable(),
    outcome: z.union([z.strictObject(generated()), failureShape(), tensorsShape()]).optional(),
  });

export const openRequestsShape = () =>
  z.strictObject({
    requests: z.array(
      z.strictObject({
        id: z.string(),
        state: z.enum(openStates),
        admitted_at: z.string().nullable(),
        priority: z.number().nullable(),
        // An integer goes up to 2^64-1, and JavaScript's own parser rounds it.
        sequence_id: z.union([z.number(), z.string()]).nullable(),
        step: z.number().nullable(),
        worker: z.string().nullable(),
        deliveries: z.number(),
        stream: z.boolean(),
        index: z.number().nullable(),
      }),
    ),
    next: z.string().optional(),
  });

const endedShape = () =>
  z.strictObject({ error: z.string(), code: z.literal("already_ended"), state: z.enum(requestStates) });

export const requestEndpoints = [
  endpoint({
    method: "GET",
    path: "/v2/requests/:id",
    right: "read",
    opensByTicketFor: "id",
    query: { ticket: ticketParameter },
    ignoresOthers: true,
    does: "Shows the status of a request, with its outcome once it has ended.",
    answers: { 200: { says: "The status.", shape: statusShape } },
    refusals: ["unknown_request"],
    handle: async (asked, requests) => jsonTextReply((await requests.status(asked.caller, asked.segment("id"))).json),
  }),
  endpoint({
    method: "DELETE",
    path: "/v2/requests/:id",
    right: "cancel",
    does: "Cancels a request.",
    answers: {
      204: { says: "The request is cancelled, now or before." },
      409: { says: "The request had ended in another way.", shape: endedShape },
    },
    refusals: ["unknown_request"],
    async handle(asked, requests) {
      const ended = await requests.cancel(asked.caller, asked.segment("id"));
      return ended === undefined ? noContent : endedBefore(ended.state);
    },
  }),
  endpoint({
    method: "POST",
    path: "/v2/requests/:id/detach",
    right: "cancel",
    does: "Lets a request run to its end, even without a reader of its stream.",
    answers: { 204: { says: "The request needs no reader." } },
    refusals: ["unknown_request"],
    async handle(asked, requests) {
      await requests.detach(asked.caller, asked.segment("id"));
      return noContent;
    },
  }),
];

function endedBefore(state: RequestState): Reply {
  const code = "already_ended";
  const { status, texts } = errorKinds[code];
  return jsonReply({ error: texts.usual, code, state }, status);
}

/** The requests for a model that have not ended. */
export const openRequestEndpoints = forModel(
  endpoint({
    method: "GET",
    path: "/v2/models/:model/requests",
    right: "read",
    does: "Lists the caller's requests for a model that wait or run, in no order.",
    query: { limit: pageSize(100, 1_000), after: text, state: oneOf(openStates) },
    answers: { 200: { says: "A page of requests; `next` is the `after` of the next page.", shape: openRequestsShape } },
    refusals: ["unknown_model", "model_unavailable"],
    handle: async (asked, requests) => jsonReply(await requests.list(asked.caller, modelOf(asked), asked.query)),
  }),
);
