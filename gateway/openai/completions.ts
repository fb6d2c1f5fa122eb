/** `POST /v1/completions`: each prompt is a generation of its own. */
import type { JsonObject } from "#shared/json/parse.js";
import type { ModelDirectory } from "../models.js";
import type { Job, RequestTerms } from "./job.js";
import { requestedModel } from "./models.js";
import { parseCompletion } from "./parse-completion.js";
import { completionWording } from "./render-completion.js";

/** @throws InferenceError */
export function completionJob(
  body: JsonObject,
  directory: ModelDirectory,
  idempotencyKey: string | undefined,
  terms: RequestTerms,
): Job {
  const { model, generator } = requestedModel(directory, body);
  const { generations, choices, echoes, delivery } = parseCompletion(body, generator, idempotencyKey);
  return {
    model,
    requests: generations.map((generation) => ({ ...terms, ...generation, model })),
    choices,
    delivery,
    wording: completionWording(choices, echoes),
  };
}
