/**
 * `GET /v1/models`, and the model that a body names. OpenAI's paths serve the generators of the
 * fleet, each by its name and in its latest version.
 */
import type { ServedModel } from "#shared/contract/announcement.js";
import { InferenceError } from "#shared/errors.js";
import type { JsonObject } from "#shared/json/parse.js";
import { ParameterError, readString } from "../../generation/parameters.js";
import type { GeneratorInfo } from "../../generation/sampling.js";
import type { ModelDirectory } from "../../fleet/models.js";
import { jsonReply, type Reply } from "../reply.js";

export interface GeneratorModel {
  readonly model: ServedModel;
  readonly generator: GeneratorInfo;
}

/** Answers `GET /v1/models`. */
export function listModels(directory: ModelDirectory): Reply {
  const latest = new Map(directory.all().map((model) => [model.name, model]));
  const data = [...latest.values()].filter(({ generator }) => generator !== undefined).map(modelObject);
  return jsonReply({ object: "list", data });
}

/**
 * Answers `GET /v1/models/<name>`.
 * @throws InferenceError `unknown_model`
 */
export function retrieveModel(directory: ModelDirectory, name: string): Reply {
  const model = findModel(directory, name);
  if (model.generator === undefined) throw modelNotFound(`The model '${name}' does not generate text`);
  return jsonReply(modelObject(model));
}

/**
 * Finds the generator that a body names.
 * @throws InferenceError `unknown_model`, or `invalid_argument` for a model that generates no text
 */
export function requestedModel(directory: ModelDirectory, body: JsonObject): GeneratorModel {
  const name = readString(body, "model");
  if (name === undefined) throw new ParameterError("model", "model must be given");
  const model = findModel(directory, name);
  const { generator } = model;
  if (generator !== undefined) return { model, generator };
  throw new ParameterError("model", `The model '${name}' does not generate text; its path is /v2/models/${name}/infer`);
}

function findModel(directory: ModelDirectory, name: string): ServedModel {
  try {
    return directory.find(name);
  } catch (error) {
    if (!(error instanceof InferenceError && error.code === "unknown_model")) throw error;
    throw modelNotFound(`The model '${name}' does not exist`);
  }
}

function modelNotFound(message: string): ParameterError {
  return new ParameterError("model", message, "unknown_model");
}

/**
 * `created` is 0, because Baton does not know when a model was made, and all gateways must agree.
 */
function modelObject({ name, generator }: ServedModel): object {
  return {
    id: name,
    object: "model",
    created: 0,
    owned_by: "baton",
    max_model_len: generator?.contextLength,
  };
}
