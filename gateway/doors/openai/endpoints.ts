/**
 * OpenAI's paths, so that OpenAI's clients work without changes. Every answer under `/v1/` has
 * OpenAI's form, refusals too.
 */
import { z } from "zod";
import { parseRequestJson } from "#shared/json/members.js";
import type { JsonObject } from "#shared/json/parse.js";
import type { Inference } from "../../admission/inference.js";
import { noted } from "../../facts/request-facts.js";
import { acceptedAnswer } from "../../api/endpoint/accepted.js";
import type { Asked } from "../../api/endpoint/asked.js";
import { endpointsOf } from "../../api/endpoint/endpoint.js";
import { queueRefusals, runFailures } from "../../api/endpoint/refusals.js";
import type { Fleet } from "../../fleet/watch.js";
import { textBodyLimit } from "../../formats/limits.js";
import { parseChatRequest } from "../../formats/openai/chat.js";
import { parseCompletionRequest } from "../../formats/openai/completions.js";
import { listModels, retrieveModel } from "../../formats/openai/models.js";
import type { Reply } from "../../formats/reply.js";
import { usualDeadline } from "../../generation/limits.js";
import { factsOf } from "../../facts/answer-facts.js";
import { prefersAsync } from "../../http/headers.js";
import { answer } from "./answer.js";

/** The parts that answer OpenAI's paths. */
export interface OpenAiParts {
  readonly fleet: Pick<Fleet, "directory">;
  readonly inference: Inference;
}

const metadata = endpointsOf<OpenAiParts>("metadata");
const inference = endpointsOf<OpenAiParts>("inference");

const modelShape = () =>
  z.strictObject({
    id: z.string(),
    object: z.literal("model"),
    created: z.number(),
    owned_by: z.literal("baton"),
    max_model_len: z.number(),
  });

const generationTerms = {
  method: "POST",
  right: "infer",
  body: "application/json",
  answers: {
    200: { says: "The whole answer, or the events of a stream of chunks.", mediaType: "*/*" },
    202: acceptedAnswer,
  },
  refusals: [...queueRefusals, ...runFailures, "result_expired", "resume_window_passed"],
} as const;

export const openAiEndpoints = [
  metadata({
    method: "GET",
    path: "/v1/models",
    open: "metadata",
    does: "Lists the models that generate text.",
    answers: {
      200: {
        says: "All generators.",
        shape: () => z.strictObject({ object: z.literal("list"), data: z.array(modelShape()) }),
      },
    },
    handle: (asked, { fleet }) => listModels(asked.models(fleet)),
  }),
  metadata({
    method: "GET",
    path: "/v1/models/:model",
    open: "metadata",
    does: "Shows a model that generates text.",
    answers: { 200: { says: "The model.", shape: modelShape } },
    refusals: ["unknown_model"],
    handle: (asked, { fleet }) => retrieveModel(asked.models(fleet), asked.segment("model")),
  }),
  inference({
    ...generationTerms,
    path: "/v1/completions",
    does: "Completes one or several prompts.",
    handle: (asked, parts) => generate(asked, parts, parseCompletionRequest),
  }),
  inference({
    ...generationTerms,
    path: "/v1/chat/completions",
    does: "Continues a chat.",
    handle: (asked, parts) => generate(asked, parts, parseChatRequest),
  }),
];

/** @throws InferenceError */
async function generate(
  asked: Asked,
  parts: OpenAiParts,
  parse: typeof parseCompletionRequest,
): Promise<Reply | undefined> {
  const { caller, incoming, outgoing, limits } = asked;
  // The facts are noted below the trace, so that they name it.
  const traced = (model?: string) => asked.traced(noted(parts.inference, factsOf(incoming)), "openai", model);
  let idempotencyKey: string | undefined;
  let body: JsonObject;
  try {
    idempotencyKey = asked.idempotencyKey();
    body = await asked.body({ maxBytes: textBodyLimit(limits) }, (bytes) => parseRequestJson(bytes));
  } catch (error) {
    traced();
    throw error;
  }
  const { model } = body;
  const inference = traced(typeof model === "string" ? model : undefined);
  const background = prefersAsync(incoming.headers);
  const terms = { tenant: caller.tenant, budget: asked.budget(), deadlineMs: usualDeadline(limits), background };
  const request = parse(body, asked.models(parts.fleet), idempotencyKey, terms);
  return answer(request, inference, outgoing);
}
