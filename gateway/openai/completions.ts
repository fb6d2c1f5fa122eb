/** `POST /v1/completions`: each prompt is a generation of its own. */
import type { JsonObject } from "#shared/json/parse.js";
import { ParameterFault } from "../generation/fault.js";
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
  if (terms.background && generations.length > 1) {
    throw new ParameterFault("prompt", "prompt must be a single one for an answer that is fetched later");
  }
  return {
    model,
    requests: generations.map((generation) => ({ ...terms, ...generation, model })),
    choices,
    delivery,
    wording: completionWording(choices, echoes),
  };
}
