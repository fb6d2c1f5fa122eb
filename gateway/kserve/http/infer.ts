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
import { receiveRequest } from "./receive-request.js";
import { tensorRequest } from "./tensor-request.js";
import { isBinary, renderInfer } from "./infer-response.js";
import { streamText, wholeText } from "./text-answer.js";
import { readTextGeneration, refuseRepeating } from "../text-generation.js";
import { outputTensor } from "../text-tensors.js";
import type { Tensor } from "#shared/frame.js";
import { errorReply } from "../../http/errors.js";
import { withHeaders, type Reply } from "../../http/reply.js";

/**
 * @returns undefined if the answer was a stream
 * @throws InferenceError
 */
export async function inferOverHttp(exchange: ModelExchange): Promise<Reply | undefined> {
  const { incoming, model, others, inference, printer, limits } = exchange;
  const { headers } = incoming;
  const idempotencyKey = readIdempotencyKey(headers);
  const headerLength = headers["inference-header-content-length"] as string | undefined;
  const jsonBytes = headerLength === undefined ? undefined : Number(headerLength);
  const terms = { maxBytes: longestBody(exchange, jsonBytes), jsonBytes, encoding: headers["content-encoding"] };
  const reading = { path: "infer", headerLength, model, others, limits } as const;
  const read = await receiveRequest(exchange, incoming, terms, reading);
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
