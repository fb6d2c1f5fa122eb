/**
 * `POST /v2/models/M[/versions/V]/generate` and `generate_stream`: text models without tensors in their bodies, and any other model whose inputs flat JSON can tell;
 * spec/http-v2.md section 9.
 */
import { InferenceError } from "#shared/errors.js";
import { textBodyLimit } from "../generation/cost.js";
import { acceptedReply } from "../requests/prefer.js";
import { onlyTenant } from "../tenant.js";
import type { ModelExchange } from "./exchange.js";
import { readTextGeneration, refuseRepeating, type TextGeneration } from "./generation-parameters.js";
import { readIdempotencyKey } from "./idempotency-key.js";
import type { ReadRequest } from "./read-request.js";
import { renderGenerate } from "./render-generate.js";
import { errorReply, withHeaders, type Reply } from "./reply.js";
import { asEvent, streamText, wholeText } from "./text-answer.js";
import { outputTensor, textOfInput } from "./text-tensor.js";

/** What has been read and checked, and only has to be run. */
interface Ready extends ReadRequest {
  readonly idempotencyKey: string | undefined;
}

/** @throws InferenceError */
export async function generateOverHttp(exchange: ModelExchange): Promise<Reply> {
  const ready = await readReady(exchange);
  const generation = textGeneration(exchange, ready);
  if (generation === undefined) return inferOnce(exchange, ready);
  if (generation.request.background) return acceptedReply((await exchange.generate(generation.request)).id);
  const { texts, responses, headers } = await wholeText(generation, exchange.generate, exchange.outgoing);
  if (generation.stream === true && responses !== 1) return manyResponses();
  return withHeaders(textReply(exchange, ready, texts), headers);
}

/** Undefined where the answer was a stream. @throws InferenceError */
export async function generateStreamOverHttp(exchange: ModelExchange): Promise<Reply | undefined> {
  const ready = await readReady(exchange);
  const generation = textGeneration(exchange, ready);
  if (generation === undefined) return asEvent(await inferOnce(exchange, ready));
  const { model, generate, outgoing } = exchange;
  if (generation.request.background) return acceptedReply((await generate(generation.request)).id);
  if (generation.stream === false) {
    const { texts, headers } = await wholeText(generation, generate, outgoing);
    return withHeaders(asEvent(textReply(exchange, ready, texts)), headers);
  }
  refuseRepeating(generation);
  const refusal = await streamText(generation, generate, outgoing, (texts) =>
    renderGenerate(model, ready.id, [outputTensor(texts)]),
  );
  return refusal && asEvent(refusal);
}

async function readReady({ incoming, model, bodies, limits }: ModelExchange): Promise<Ready> {
  const idempotencyKey = readIdempotencyKey(incoming.headers);
  const encoding = incoming.headers["content-encoding"]?.trim().toLowerCase() ?? "";
  if (encoding !== "" && encoding !== "identity") {
    incoming.resume();
    throw new InferenceError("invalid_argument", "Unsupported content-encoding, only 'identity' is supported.");
  }
  const terms = { maxBytes: textBodyLimit(limits) };
  const reading = { path: "generate", headerLength: undefined, model, limits } as const;
  return { ...(await bodies.readRequest(incoming, terms, reading)), idempotencyKey };
}

/** Undefined for a model that is no generator. */
function textGeneration({ incoming, model, limits }: ModelExchange, ready: Ready): TextGeneration | undefined {
  const [text] = ready.valid.inputs;
  if (model.generator === undefined || text === undefined) return undefined;
  const { textParameters } = ready;
  return readTextGeneration(model, textOfInput(text, model.name), textParameters, incoming.headers, limits);
}

async function inferOnce({ model, infer }: ModelExchange, ready: Ready): Promise<Reply> {
  const { id, parameters, valid, idempotencyKey } = ready;
  const outcome = await infer({
    model,
    tenant: onlyTenant,
    sequence: valid.sequence,
    inputs: valid.inputs,
    outputs: valid.outputs.map(({ name }) => name),
    parameters: parameters.custom,
    idempotencyKey,
    deadlineMs: parameters.deadlineMs,
  });
  if (outcome.kind === "error") return errorReply(outcome.code, outcome.message);
  return jsonText(renderGenerate(model, id, outcome.tensors));
}

function textReply({ model }: ModelExchange, { id }: Ready, texts: readonly string[]): Reply {
  return jsonText(renderGenerate(model, id, [outputTensor(texts)]));
}

function jsonText(text: string): Reply {
  return { status: 200, headers: { "content-type": "application/json" }, body: [text] };
}

/** Triton's status was decided by the first of the responses. */
function manyResponses(): Reply {
  return errorReply(
    "invalid_argument",
    "generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses",
    200,
  );
}
