/** The outcome of an inference as the answer of `infer`: JSON, and bytes behind the JSON. */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { Tensor } from "#shared/frame.js";
import type { Reply } from "../reply.js";
import type { RequestedOutput } from "./request.js";
import { rawToJson } from "./tensors-json.js";
import type { Printed } from "./tensor-printer.js";

/**
 * Writes a result in the form that the client asks for, each output as JSON or as bytes behind the
 * JSON.
 * @param requested the outputs that the client named; any other output is JSON
 * @param step number of the step in its sequence, counted from the START; undefined outside a
 * sequence
 * @param printed JSON of the tensors that another thread has printed already
 * @throws InferenceError if an output has no form in JSON
 */
export function renderInfer(
  id: string,
  model: Pick<ServedModel, "name" | "version">,
  requested: readonly RequestedOutput[],
  tensors: readonly Tensor[],
  step?: number,
  printed: Printed = new Map(),
): Reply {
  const parameters = step === undefined ? "" : `"parameters":{"sequence_step":${step}},`;
  const idMember = id === "" ? "" : `"id":${JSON.stringify(id)},`;
  const json: (string | Buffer)[] = [];
  /** Text that follows the last buffer of `json`. */
  let tail = `{${idMember}"model_name":${JSON.stringify(model.name)},"model_version":${JSON.stringify(model.version)},${parameters}"outputs":[`;
  const blocks: Buffer[] = [];
  for (const [i, tensor] of tensors.entries()) {
    const comma = i === 0 ? "" : ",";
    tail += `${comma}{"name":${JSON.stringify(tensor.name)},"datatype":"${tensor.datatype}","shape":[${tensor.shape.join(",")}]`;
    if (isBinary(requested, tensor)) {
      tail += `,"parameters":{"binary_data_size":${tensor.data.length}}}`;
      if (tensor.data.length > 0) blocks.push(tensor.data);
      continue;
    }
    const text = printed.get(tensor);
    if (text === undefined) tail += `,"data":${rawToJson(tensor)}}`;
    else {
      json.push(`${tail},"data":`, text);
      tail = "}";
    }
  }
  json.push(`${tail}]}`);
  // Without a byte of binary data the reply is plain JSON and has no length header, even if an
  // output declares its 0 bytes.
  if (blocks.length === 0) return { status: 200, headers: { "content-type": "application/json" }, body: json };
  const header = json.map((part) => (typeof part === "string" ? Buffer.from(part) : part));
  return {
    status: 200,
    headers: {
      "content-type": "application/octet-stream",
      "inference-header-content-length": String(header.reduce((sum, { length }) => sum + length, 0)),
    },
    body: joinSmall([...header, ...blocks]),
  };
}

/** Whether the client wants the tensor as bytes behind the JSON. */
export function isBinary(requested: readonly RequestedOutput[], tensor: Tensor): boolean {
  return requested.find(({ name }) => name === tensor.name)?.binary === true;
}

/** Up to this size one joined write costs less than several; above it the copy costs more. */
const joinBelowBytes = 16 * 1024;

function joinSmall(parts: readonly Buffer[]): readonly Buffer[] {
  let bytes = 0;
  for (const part of parts) bytes += part.length;
  return bytes < joinBelowBytes ? [Buffer.concat(parts, bytes)] : parts;
}
