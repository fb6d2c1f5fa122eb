/** One HTTP request to a model, with all that its handler needs for the answer. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Bodies } from "../../http/bodies.js";
import { disconnection } from "../../http/disconnect.js";
import { prefersAsync, readIdempotencyKey } from "../../http/headers.js";
import type { ModelCall } from "../../formats/kserve/call.js";
import type { RequestReader } from "../../formats/kserve/request-reader.js";

export interface ModelExchange extends Omit<ModelCall, "idempotencyKey" | "background" | "gone"> {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly bodies: Bodies;
  readonly reader: RequestReader;
}

/** @throws InferenceError if the header Idempotency-Key is not valid */
export function callOf(exchange: ModelExchange): ModelCall {
  const { incoming, outgoing, tenant, model, version, others, inference, printer, limits } = exchange;
  return {
    tenant,
    model,
    version,
    others,
    inference,
    printer,
    limits,
    idempotencyKey: readIdempotencyKey(incoming.headers),
    background: prefersAsync(incoming.headers),
    gone: () => disconnection(outgoing),
  };
}
