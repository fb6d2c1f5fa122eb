/**
 * `POST /v2/models/M[/versions/V]/infer`: parses the request, compares it with the model, admits
 * it, and answers with the outcome.
 */
import { refusalOf } from "../../admission/inference.js";
import { textBodyLimit } from "../../http/limits.js";
import { compress } from "../../http/compress.js";
import type { ModelExchange } from "./exchange.js";
import { acceptedReply, acceptsByName, prefersAsync, readIdempotencyKey } from "../../http/headers.js";
import type { ReadRequest } from "./read-request.js";
import { tensorRequest } from "./tensor-request.js";
import { rawToJson } from "./tensors-json.js";
import type { Printed } from "./tensor-printer.js";
import { streamText, wholeText } from "./text-answer.js";
import { readTextGeneration, refuseRepeating } from "../text-generation.js";
import { outputTensor } from "../text-tensors.js";
import type { RequestedOutput } from "../request.js";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { Tensor } from "#shared/frame.js";
import { errorReply } from "../../http/errors.js";
import { withHeaders, type Reply } from "../../http/reply.js";

/**
 * @returns undefined if the answer was a stream
 * @throws InferenceError
 */
export async function inferOverHttp(exchange: ModelExchange): Promise<Reply | undefined> {
  const { incoming, model, others, inference, reader, printer, limits } = exchange;
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
  const { outputs } = read.valid;
  const printed = await printer.printLarge(tensors.filter((tensor) => !isBinary(outputs, tensor)));
  const reply = renderInfer(read.id, { name, version }, outputs, tensors, step, printed);
  return compress(reply, headers["accept-encoding"]);
}

function longestBody({ model, limits }: ModelExchange, jsonBytes: number | undefined): number {
  if (model.generator !== undefined) return textBodyLimit(limits);
  return jsonBytes === undefined ? limits.jsonBytes : limits.binaryBytes;
}

/**
 * Answers for a generator. One BYTES element comes in; the whole text goes out, or an event for
 * each part of the text. For events a client has to give the parameter `stream` and to accept
 * events, because Triton's own clients read one response.
 * @returns undefined if the answer was a stream
 * @throws InferenceError
 */
async function inferText(
  { incoming, outgoing, tenant, model, inference, limits }: ModelExchange,
  { id, textParameters, valid: { inputs, outputs } }: ReadRequest,
  idempotencyKey: string | undefined,
): Promise<Reply | undefined> {
  const [input] = inputs;
  const [output] = outputs;
  if (input === undefined || output === undefined) throw new TypeError(`generator '${model.name}' has no tensors`);
  const tensorOf = (texts: readonly string[]): Tensor => outputTensor(output.name, texts, input.shape);
  const background = prefersAsync(incoming.headers);
  const terms = { tenant, model, idempotencyKey, background, limits };
  const generation = readTextGeneration(terms, input, textParameters);
  if (generation.request.background) return acceptedReply((await inference.generate(generation.request)).id);
  if (generation.stream === true && acceptsByName(incoming.headers, "text/event-stream")) {
    refuseRepeating(generation);
    // An event cannot hold bytes, so all outputs are JSON.
    return streamText(generation, inference, outgoing, (texts) =>
      renderInfer(id, model, [], [tensorOf(texts)]).body.join(""),
    );
  }
  const { texts, headers } = await wholeText(generation, inference, outgoing);
  const reply = renderInfer(id, model, outputs, [tensorOf(texts)]);
  return withHeaders(await compress(reply, incoming.headers["accept-encoding"]), headers);
}

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

function isBinary(requested: readonly RequestedOutput[], tensor: Tensor): boolean {
  return requested.find(({ name }) => name === tensor.name)?.binary === true;
}

/** Up to this size one joined write costs less than several; above it the copy costs more. */
const joinBelowBytes = 16 * 1024;

function joinSmall(parts: readonly Buffer[]): readonly Buffer[] {
  let bytes = 0;
  for (const part of parts) bytes += part.length;
  return bytes < joinBelowBytes ? [Buffer.concat(parts, bytes)] : parts;
}
