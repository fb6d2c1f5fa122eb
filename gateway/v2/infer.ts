/** `POST /v2/models/M[/versions/V]/infer`: parse, compare with the model, hand on, answer; in that order. */
import { acceptedReply, prefersAsync } from "../requests/prefer.js";
import { onlyTenant } from "../tenant.js";
import { readBody } from "./body.js";
import { compress } from "./compress.js";
import type { ModelExchange } from "./exchange.js";
import { readIdempotencyKey } from "./idempotency-key.js";
import { inferText } from "./infer-text.js";
import { inflate } from "./inflate.js";
import { parseInfer } from "./parse-infer.js";
import { renderInfer } from "./render-infer.js";
import { errorReply, type Reply } from "./reply.js";
import { validateInfer } from "./validate-infer.js";

/** Undefined where the answer was a stream. @throws InferenceError */
export async function inferOverHttp(exchange: ModelExchange): Promise<Reply | undefined> {
  const { incoming, model, infer, limits } = exchange;
  const { headers } = incoming;
  const idempotencyKey = readIdempotencyKey(headers);
  const headerLength = headers["inference-header-content-length"] as string | undefined;
  const maxBytes = headerLength === undefined ? limits.jsonBytes : limits.binaryBytes;
  const encoding = headers["content-encoding"];
  const received = await readBody(incoming, maxBytes);
  const body = encoding === undefined ? received : await inflate(received, encoding, maxBytes);
  const parsed = parseInfer(body, headerLength, model, limits);
  const valid = validateInfer(parsed, model);
  if (model.generator !== undefined) return inferText(exchange, parsed, valid);
  const { inputs, outputs, sequence } = valid;
  const request = {
    model,
    tenant: onlyTenant,
    sequence,
    inputs,
    outputs: outputs.map(({ name }) => name),
    parameters: parsed.parameters.custom,
    idempotencyKey,
    deadlineMs: parsed.parameters.deadlineMs,
  };
  if (prefersAsync(headers)) return acceptedReply(await exchange.inferLater(request));
  const outcome = await infer(request);
  if (outcome.kind === "error") return errorReply(outcome.code, outcome.message);
  return compress(renderInfer(parsed.id, model, outputs, outcome.tensors), headers["accept-encoding"]);
}
