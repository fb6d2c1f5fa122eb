/** The models that OpenAI's paths serve: the fleet's generators, each by its name and in its latest version. */
import type { ServedModel } from "#shared/contract/announcement.js";
import { InferenceError } from "#shared/errors.js";
import type { JsonObject } from "#shared/json/parse.js";
import { ParameterFault } from "../generation/fault.js";
import { readString } from "../generation/read-member.js";
import type { Generator } from "../generation/sampling.js";
import type { ModelDirectory } from "../models.js";
import { jsonReply, type Reply } from "../v2/reply.js";

export interface GeneratorModel {
  readonly model: ServedModel;
  readonly generator: Generator;
}

export function listModels(directory: ModelDirectory): Reply {
  const latest = new Map(directory.all().map((model) => [model.name, model]));
  const data = [...latest.values()].filter(({ generator }) => generator !== undefined).map(describe);
  return jsonReply({ object: "list", data });
}

export function retrieveModel(directory: ModelDirectory, name: string): Reply {
  const model = find(directory, name);
  if (model.generator === undefined) throw notFound(`The model '${name}' does not generate text`);
  return jsonReply(describe(model));
}

/** The model that a body names. */
export function requestedModel(directory: ModelDirectory, body: JsonObject): GeneratorModel {
  const name = readString(body, "model");
  if (name === undefined) throw new ParameterFault("model", "model must be given");
  const model = find(directory, name);
  const { generator } = model;
  if (generator !== undefined) return { model, generator };
  throw new ParameterFault("model", `The model '${name}' does not generate text; its path is /v2/models/${name}/infer`);
}

function find(directory: ModelDirectory, name: string): ServedModel {
  try {
    return directory.find(name);
  } catch (error) {
    if (!(error instanceof InferenceError && error.code === "unknown_model")) throw error;
    throw notFound(`The model '${name}' does not exist`);
  }
}

function notFound(message: string): ParameterFault {
  return new ParameterFault("model", message, "unknown_model");
}

/** When a model was made is not known; every gateway says the same. */
function describe({ name, generator }: ServedModel): object {
  return {
    id: name,
    object: "model",
    created: 0,
    owned_by: "baton",
    max_model_len: generator?.contextLength,
  };
}
