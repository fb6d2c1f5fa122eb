/**
 * `POST /v2/models/M[/versions/V]/infer`: the request is parsed, compared with the model and handed
 * on, and its outcome is the answer.
 */
import { refusalOf } from "../../admission/inference.js";
import { textBodyLimit } from "../../http/limits.js";
import { compress } from "../../http/compress.js";
import type { ModelExchange } from "./exchange.js";
import { acceptedReply, prefersAsync, readIdempotencyKey } from "../../http/headers.js";
import type { ReadRequest } from "./read-request.js";
import { tensorRequest } from "./tensor-request.js";
import { rawToJson } from "./tensors-json.js";
import { streamText, wholeText } from "./text-answer.js";
import { outputTensor, readTextGeneration, refuseRepeating, textOfInput } from "../text-generation.js";
import type { RequestedOutput } from "../request.js";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { Tensor } from "#shared/frame.js";
import { errorReply } from "../../http/errors.js";
import { withHeaders, type Reply } from "../../http/reply.js";

/**
 * @returns undefined where the answer was a stream
 * @throws InferenceError
 */
export async function inferOverHttp(exchange: ModelExchange): Promise<Reply | undefined> {
  const { incoming, model, others, inference, reader, limits } = exchange;
  const { headers } = incoming;
  const idempotencyKey = readIdempotencyKey(headers);
  const headerLength = headers["inference-header-content-length"] as string | undefined;
  const jsonBytes = headerLength === undefined ? undefined : Number(headerLength);
  const terms = { maxBytes: longestBody(exchange, jsonBytes), jsonBytes, encoding: headers["content-encoding"] };
  const read = await reader.read(incoming, terms, { path: "infer", headerLength, model, others, limits });
  if (model.generator !== undefined) return inferText(exchange, read, idempotencyKey);
  const request = tensorRequest(exchange, read, idempotencyKey);
  if (prefersAsync(headers)) return acceptedReply(await inference.inferLater(request));
  const outcome = await inference.infer(request);
  if (outcome.kind === "error") return errorReply(refusalOf(outcome));
  const { name } = model;
  const { version, tensors, step } = outcome;
  const reply = renderInfer(read.id, { name, version }, read.valid.outputs, tensors, step);
  return compress(reply, headers["accept-encoding"]);
}

function longestBody({ model, limits }: ModelExchange, jsonBytes: number | undefined): number {
  if (model.generator !== undefined) return textBodyLimit(limits);
  return jsonBytes === undefined ? limits.jsonBytes : limits.binaryBytes;
}

/**
 * Answers for a generator. One BYTES element comes in; the whole text goes out, or with the
 * parameter `stream` an event for each part of it.
 * @returns undefined where the answer was a stream
 * @throws InferenceError
 */
async function inferText(
  { incoming, outgoing, tenant, model, inference, limits }: ModelExchange,
  { id, textParameters, valid: { inputs, outputs } }: ReadRequest,
  idempotencyKey: string | undefined,
): Promise<Reply | undefined> {
  const [input] = inputs;
  if (input === undefined) throw new TypeError(`generator '${model.name}' announced no input`);
  const text = textOfInput(input, model.name);
  const background = prefersAsync(incoming.headers);
  const terms = { tenant, model, idempotencyKey, background, limits };
  const generation = readTextGeneration(terms, text, textParameters);
  if (generation.request.background) return acceptedReply((await inference.generate(generation.request)).id);
  if (generation.stream === true) {
    refuseRepeating(generation);
    // An event has no place for bytes, so all outputs are JSON.
    return streamText(generation, inference, outgoing, (texts) =>
      renderInfer(id, model, [], [outputTensor(texts)]).body.join(""),
    );
  }
  const { texts, headers } = await wholeText(generation, inference, outgoing);
  const reply = renderInfer(id, model, outputs, [outputTensor(texts)]);
  return withHeaders(await compress(reply, incoming.headers["accept-encoding"]), headers);
}

/**
 * Writes a result as the client asked for it, each output as JSON or as bytes that follow the JSON.
 * @param requested the outputs that the client named; one that it did not name is JSON
 * @param step which step of its sequence it was, counted from the START; undefined for no step
 * @throws InferenceError where an output cannot be written as JSON
 */
export function renderInfer(
  id: string,
  model: Pick<ServedModel, "name" | "version">,
  requested: readonly RequestedOutput[],
  tensors: readonly Tensor[],
  step?: number,
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
  const parameters = step === undefined ? "" : `"parameters":{"sequence_step":${step}},`;
  const idMember = id === "" ? "" : `"id":${JSON.stringify(id)},`;
  const json = `{${idMember}"model_name":${JSON.stringify(model.name)},"model_version":${JSON.stringify(model.version)},${parameters}"outputs":[${entries.join(",")}]}`;
  // Without a byte of binary data the reply is plain JSON and has no length header, even if an
  // output declares its 0 bytes.
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

/** Up to this size one joined write costs less than several; above it the copy costs more. */
const joinBelowBytes = 16 * 1024;

function joinSmall(parts: readonly Buffer[]): readonly Buffer[] {
  let bytes = 0;
  for (const part of parts) bytes += part.length;
  return bytes < joinBelowBytes ? [Buffer.concat(parts, bytes)] : parts;
}
