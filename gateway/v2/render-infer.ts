/** A result as the client asked for it, output by output; spec/http-v2.md section 6. */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { Tensor } from "#shared/frame.js";
import type { RequestedOutput } from "./parse-outputs.js";
import { rawToJson } from "./raw-to-json.js";
import type { Reply } from "./reply.js";

/** @throws InferenceError where an output cannot be written as JSON */
export function renderInfer(
  id: string,
  model: Pick<ServedModel, "name" | "version">,
  requested: readonly RequestedOutput[],
  tensors: readonly Tensor[],
): Reply {
  const entries: string[] = [];
  const blocks: Buffer[] = [];
  for (const tensor of tensors) {
    const head = `{"name":${JSON.stringify(tensor.name)},"datatype":"${tensor.datatype}","shape":[${tensor.shape.join(",")}]`;
    if (requested.find(({ name }) => name === tensor.name)?.binary === true) {
      entries.push(`${head},"parameters":{"binary_data_size":${tensor.data.length}}}`);
      if (tensor.data.length > 0) blocks.push(tensor.data);
    } else entries.push(`${head},"data":${rawToJson(tensor)}}`);
  }
  const idMember = id === "" ? "" : `"id":${JSON.stringify(id)},`;
  const json = `{${idMember}"model_name":${JSON.stringify(model.name)},"model_version":${JSON.stringify(model.version)},"outputs":[${entries.join(",")}]}`;
  // Without a byte of binary data the reply is plain JSON and has no length header, even if an output declares its 0 bytes.
  if (blocks.length === 0) return { status: 200, headers: { "content-type": "application/json" }, body: [json] };
  const header = Buffer.from(json);
  return {
    status: 200,
    headers: {
      "content-type": "application/octet-stream",
      "inference-header-content-length": String(header.length),
    },
    body: joinSmall([header, ...blocks]),
  };
}

/** One small write costs less than several; above this the copy costs more. */
const joinBelowBytes = 16 * 1024;

function joinSmall(parts: readonly Buffer[]): readonly Buffer[] {
  let bytes = 0;
  for (const part of parts) bytes += part.length;
  return bytes < joinBelowBytes ? [Buffer.concat(parts, bytes)] : parts;
}
