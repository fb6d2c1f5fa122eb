/** `POST /v2/models/M[/versions/V]/infer`: parse, compare with the model, hand on, answer; in that order. */
import { textBodyLimit } from "../generation/cost.js";
import { acceptedReply, prefersAsync } from "../requests/prefer.js";
import { onlyTenant } from "../tenant.js";
import { compress } from "./compress.js";
import type { ModelExchange } from "./exchange.js";
import { readIdempotencyKey } from "./idempotency-key.js";
import { inferText } from "./infer-text.js";
import { renderInfer } from "./render-infer.js";
import { errorReply, type Reply } from "./reply.js";

/** Undefined where the answer was a stream. @throws InferenceError */
export async function inferOverHttp(exchange: ModelExchange): Promise<Reply | undefined> {
  const { incoming, model, infer, bodies, limits } = exchange;
  const { headers } = incoming;
  const idempotencyKey = readIdempotencyKey(headers);
  const headerLength = headers["inference-header-content-length"] as string | undefined;
  const jsonBytes = headerLength === undefined ? undefined : Number(headerLength);
  const terms = { maxBytes: longestBody(exchange, jsonBytes), jsonBytes, encoding: headers["content-encoding"] };
  const read = await bodies.readRequest(incoming, terms, { path: "infer", headerLength, model, limits });
  const { id, parameters, valid } = read;
  if (model.generator !== undefined) return inferText(exchange, read, valid);
  const { inputs, outputs, sequence } = valid;
  const request = {
    model,
    tenant: onlyTenant,
    sequence,
    inputs,
    outputs: outputs.map(({ name }) => name),
    parameters: parameters.custom,
    idempotencyKey,
    deadlineMs: parameters.deadlineMs,
  };
  if (prefersAsync(headers)) return acceptedReply(await exchange.inferLater(request));
  const outcome = await infer(request);
  if (outcome.kind === "error") return errorReply(outcome.code, outcome.message);
  return compress(renderInfer(id, model, outputs, outcome.tensors), headers["accept-encoding"]);
}

function longestBody({ model, limits }: ModelExchange, jsonBytes: number | undefined): number {
  if (model.generator !== undefined) return textBodyLimit(limits);
  return jsonBytes === undefined ? limits.jsonBytes : limits.binaryBytes;
}
