/** `POST /v1/chat/completions`: one generation, whose prompt the worker makes with the model's own template. */
import type { JsonObject } from "#shared/json/parse.js";
import type { ModelDirectory } from "../models.js";
import type { Job, RequestTerms } from "./job.js";
import { requestedModel } from "./models.js";
import { parseChat } from "./parse-chat.js";
import { chatWording } from "./render-chat.js";

/** @throws InferenceError */
export function chatJob(
  body: JsonObject,
  directory: ModelDirectory,
  idempotencyKey: string | undefined,
  terms: RequestTerms,
): Job {
  const { model, generator } = requestedModel(directory, body);
  const { generation, choices, delivery } = parseChat(body, model, generator, idempotencyKey);
  return { model, requests: [{ ...terms, ...generation, model }], choices, delivery, wording: chatWording(choices) };
}
