/** `POST /v2/models/M[/versions/V]/infer`: parse, compare with the model, hand on, answer; in that order. */
import type { IncomingMessage } from "node:http";
import type { Infer } from "../inference.js";
import type { ServedModel } from "#shared/contract/announcement.js";
import { InferenceError } from "#shared/errors.js";
import { readBody } from "./body.js";
import { compress } from "./compress.js";
import { inflate } from "./inflate.js";
import type { Limits } from "./limits.js";
import { parseInfer } from "./parse-infer.js";
import { renderInfer } from "./render-infer.js";
import { errorReply, type Reply } from "./reply.js";
import { validateInfer } from "./validate-infer.js";

/** Until requests carry keys, all clients are one tenant. */
const onlyTenant = "default";

export async function inferOverHttp(
  incoming: IncomingMessage,
  model: ServedModel,
  infer: Infer,
  limits: Limits,
): Promise<Reply> {
  const { headers } = incoming;
  const idempotencyKey = readIdempotencyKey(headers["idempotency-key"]);
  const headerLength = headers["inference-header-content-length"] as string | undefined;
  const maxBytes = headerLength === undefined ? limits.jsonBytes : limits.binaryBytes;
  const encoding = headers["content-encoding"];
  const received = await readBody(incoming, maxBytes);
  const body = encoding === undefined ? received : await inflate(received, encoding, maxBytes);
  const parsed = parseInfer(body, headerLength, model, limits);
  const { inputs, outputs, sequence } = validateInfer(parsed, model);
  const outcome = await infer({
    model,
    tenant: onlyTenant,
    sequence,
    inputs,
    outputs: outputs.map(({ name }) => name),
    parameters: parsed.parameters.custom,
    idempotencyKey,
    deadlineMs: parsed.parameters.deadlineMs,
  });
  if (outcome.kind === "error") return errorReply(outcome.code, outcome.message);
  return compress(renderInfer(parsed.id, model, outputs, outcome.tensors), headers["accept-encoding"]);
}

function readIdempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  const key = String(header);
  if (!/^[\x20-\x7e]{1,255}$/.test(key)) {
    throw new InferenceError("invalid_argument", "Idempotency-Key must be 1 to 255 printable ASCII characters");
  }
  return key;
}
