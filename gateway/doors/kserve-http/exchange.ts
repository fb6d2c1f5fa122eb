/** One HTTP request to a model, with all that its handler needs for the answer. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Client } from "../../admission/inference.js";
import type { Bodies } from "../../http/bodies.js";
import { disconnection } from "../../http/disconnect.js";
import { isCut } from "../../http/stopping.js";
import { prefersAsync, readIdempotencyKey } from "../../http/headers.js";
import type { ModelCall } from "../../formats/kserve/call.js";
import type { RequestReader } from "../../formats/kserve/request-reader.js";

/** What is known about a call before the headers are read. */
export type CallTerms = Omit<ModelCall, "idempotencyKey" | "background" | "gone" | "client">;

export interface ModelExchange extends CallTerms {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly bodies: Bodies;
  readonly reader: RequestReader;
  /** Called when the body has come. @throws InferenceError if the client may ask no longer */
  readonly judgeAgain: () => Promise<void>;
}

/** @throws InferenceError if the header Idempotency-Key is not valid */
export function callOf(
  terms: CallTerms,
  headers: IncomingHttpHeaders,
  { gone, client }: Pick<ModelCall, "gone" | "client">,
): ModelCall {
  const { tenant, budget, model, version, others, inference, printer, limits } = terms;
  return {
    tenant,
    budget,
    model,
    version,
    others,
    inference,
    printer,
    limits,
    idempotencyKey: readIdempotencyKey(headers),
    background: prefersAsync(headers),
    gone,
    client,
  };
}

/** The client of an answer of node's. */
export function readerOf(outgoing: ServerResponse): Pick<ModelCall, "gone" | "client"> {
  const client: Client = {
    get hasLeft() {
      return outgoing.destroyed && !isCut(outgoing);
    },
    onLeave(leave) {
      const onClose = (): void => {
        if (!isCut(outgoing)) leave();
      };
      outgoing.once("close", onClose);
      return () => outgoing.off("close", onClose);
    },
  };
  return { gone: () => disconnection(outgoing), client };
}
