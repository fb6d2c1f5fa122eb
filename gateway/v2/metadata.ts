/** What the server and a model say about themselves; spec/http-v2.md section 4. */
import type { ServedModel, TensorSpec } from "#shared/contract/announcement.js";
import type { ModelDirectory } from "../models.js";
import { jsonReply, type Reply } from "./reply.js";

/** In Triton's order, and only what is there: a client that looks for an extension wants to use it. */
const extensions = ["sequence", "model_repository", "model_configuration", "binary_tensor_data", "parameters"];

/** @param name as the setting says: some of Triton's own clients insist on Triton's. */
export function serverMetadata(name: string, version: string): Reply {
  return jsonReply({ name, version, extensions });
}

/** @param version the one asked for, if any; else all are listed */
export function modelMetadata(directory: ModelDirectory, name: string, version: string | undefined): Reply {
  const model = directory.find(name, version);
  const versions = directory.all().filter((served) => served.name === name);
  const describe = ({ name, datatype, dims }: TensorSpec): object => ({
    name,
    datatype,
    shape: fullShape(model, dims),
  });
  return jsonReply({
    name,
    versions: version === undefined ? versions.map((served) => served.version) : [model.version],
    platform: model.platform,
    inputs: model.inputs.map(describe),
    outputs: model.outputs.map(describe),
  });
}

export function modelConfig(directory: ModelDirectory, name: string, version: string | undefined): Reply {
  return jsonReply(directory.find(name, version).config);
}

function fullShape(model: ServedModel, dims: readonly number[]): readonly number[] {
  return model.maxBatchSize > 0 ? [-1, ...dims] : dims;
}
