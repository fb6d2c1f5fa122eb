/**
 * `POST /v2/models/M[/versions/V]/generate` and `generate_stream`, Triton's generate extension: a
 * flat JSON object instead of tensors. For generators, and any other model whose inputs flat JSON
 * can express.
 */
import { refusalOf } from "../../admission/inference.js";
import { fixedError } from "#shared/errors.js";
import { textBodyLimit } from "../../http/limits.js";
import type { Tensor } from "#shared/frame.js";
import type { ModelExchange } from "./exchange.js";
import { readTextGeneration, refuseRepeating, type TextGeneration } from "../text-generation.js";
import { outputTensor } from "../text-tensors.js";
import { acceptedReply, prefersAsync, readIdempotencyKey } from "../../http/headers.js";
import type { ReadRequest } from "./read-request.js";
import { receiveRequest } from "./receive-request.js";
import { tensorRequest } from "./tensor-request.js";
import { renderGenerate } from "./generate-response.js";
import { errorReply } from "../../http/errors.js";
import { withHeaders, type Reply } from "../../http/reply.js";
import { asEvent, streamText, wholeText } from "./text-answer.js";

/** A valid request, ready to run. */
interface Ready extends ReadRequest {
  readonly idempotencyKey: string | undefined;
}

/** @throws InferenceError */
export async function generateOverHttp(exchange: ModelExchange): Promise<Reply> {
  const ready = await readReady(exchange);
  const generation = textGeneration(exchange, ready);
  if (generation === undefined) return inferOnce(exchange, ready);
  if (generation.request.background) return acceptedReply((await exchange.inference.generate(generation.request)).id);
  const { texts, responses, headers } = await wholeText(generation, exchange.inference, exchange.outgoing);
  if (generation.stream === true && responses !== 1) return manyResponses();
  return withHeaders(textReply(exchange, ready, texts), headers);
}

/**
 * @returns undefined if the answer was a stream
 * @throws InferenceError
 */
export async function generateStreamOverHttp(exchange: ModelExchange): Promise<Reply | undefined> {
  const ready = await readReady(exchange);
  const generation = textGeneration(exchange, ready);
  if (generation === undefined) return asEvent(await inferOnce(exchange, ready));
  const { model, inference, outgoing } = exchange;
  if (generation.request.background) return acceptedReply((await inference.generate(generation.request)).id);
  if (generation.stream === false) {
    const { texts, headers } = await wholeText(generation, inference, outgoing);
    return withHeaders(asEvent(textReply(exchange, ready, texts)), headers);
  }
  refuseRepeating(generation);
  const refusal = await streamText(generation, inference, outgoing, (texts) =>
    renderGenerate(model, ready.id, [textTensor(ready, texts)]),
  );
  return refusal && asEvent(refusal);
}

async function readReady(exchange: ModelExchange): Promise<Ready> {
  const { incoming, model, others, limits } = exchange;
  const idempotencyKey = readIdempotencyKey(incoming.headers);
  const encoding = incoming.headers["content-encoding"]?.trim().toLowerCase() ?? "";
  if (encoding !== "" && encoding !== "identity") {
    incoming.resume();
    throw fixedError("invalid_argument", "contentEncoding");
  }
  const terms = { maxBytes: textBodyLimit(limits) };
  const reading = { path: "generate", headerLength: undefined, model, others, limits } as const;
  return { ...(await receiveRequest(exchange, incoming, terms, reading)), idempotencyKey };
}

/**
 * Reads the request for a generation; undefined if the model is no generator.
 * @throws InferenceError
 */
function textGeneration({ incoming, tenant, model, limits }: ModelExchange, ready: Ready): TextGeneration | undefined {
  const [text] = ready.valid.inputs;
  if (model.generator === undefined || text === undefined) return undefined;
  const { textParameters, idempotencyKey } = ready;
  const terms = { tenant, model, idempotencyKey, background: prefersAsync(incoming.headers), limits };
  return readTextGeneration(terms, text, textParameters);
}

async function inferOnce(exchange: ModelExchange, ready: Ready): Promise<Reply> {
  const outcome = await exchange.inference.infer(tensorRequest(exchange, ready, ready.idempotencyKey));
  if (outcome.kind === "error") return errorReply(refusalOf(outcome));
  const { version, tensors } = outcome;
  return jsonText(renderGenerate({ name: exchange.model.name, version }, ready.id, tensors));
}

function textReply({ model }: ModelExchange, ready: Ready, texts: readonly string[]): Reply {
  return jsonText(renderGenerate(model, ready.id, [textTensor(ready, texts)]));
}

function textTensor({ valid }: Ready, texts: readonly string[]): Tensor {
  const [output] = valid.outputs;
  if (output === undefined) throw new TypeError("a generator has an output");
  return outputTensor(output.name, texts, [1]);
}

function jsonText(text: string): Reply {
  return { status: 200, headers: { "content-type": "application/json" }, body: [text] };
}

/**
 * Refuses several responses, with status 200, because Triton has sent this status before the second
 * response.
 */
function manyResponses(): Reply {
  return errorReply(fixedError("invalid_argument", "manyResponses"), "kserve", 200);
}
