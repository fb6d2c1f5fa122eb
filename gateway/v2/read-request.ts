/** A body to what it asks of a model, compared with the model: all before admission. */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { JsonObject } from "#shared/json/parse.js";
import type { Limits } from "./limits.js";
import { parseGenerate } from "./parse-generate.js";
import { parseInfer } from "./parse-infer.js";
import { customParameters, type RequestParameters } from "./parse-parameters.js";
import { validateInfer, type ValidInfer } from "./validate-infer.js";

export interface Reading {
  /** Whose body it is; `generate_stream` has the same as `generate`. */
  readonly path: "infer" | "generate";
  /** The `Inference-Header-Content-Length` header. */
  readonly headerLength: string | undefined;
  readonly model: ServedModel;
  readonly limits: Limits;
}

export interface ReadRequest {
  /** Empty where the request has none. */
  readonly id: string;
  readonly parameters: RequestParameters;
  /** What a generator reads for itself; empty for other models. */
  readonly textParameters: JsonObject;
  readonly valid: ValidInfer;
}

/** @throws InferenceError */
export function readRequest(body: Buffer, { path, headerLength, model, limits }: Reading): ReadRequest {
  if (path === "infer") {
    const parsed = parseInfer(body, headerLength, model, limits);
    const { id, parameters, textParameters } = parsed;
    return { id, parameters, textParameters, valid: validateInfer(parsed, model) };
  }
  const parsed = parseGenerate(body, model, limits);
  const isText = model.generator !== undefined;
  const parameters = customParameters(isText ? {} : parsed.parameters, limits);
  const valid = validateInfer({ ...parsed, outputs: [], parameters }, model);
  return { id: parsed.id, parameters, textParameters: isText ? parsed.parameters : {}, valid };
}
