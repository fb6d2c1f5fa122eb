/** Ties the trace of a sampled request to its answer. */
import type { ServerResponse } from "node:http";
import { InferenceError } from "#shared/errors.js";
import type { RequestTrace } from "../../trace/request-trace.js";

const traces = new WeakMap<ServerResponse, RequestTrace>();

/** Names the trace in the answer's head, and ends the trace with the answer. */
export function traceAnswer(outgoing: ServerResponse, trace: RequestTrace): void {
  traces.set(outgoing, trace);
  outgoing.setHeader("traceresponse", trace.traceresponse);
  outgoing.once("close", () => {
    // The client has left, so no status has reached it.
    if (!outgoing.headersSent) trace.failed("cancelled");
    trace.end(outgoing.statusCode);
  });
}

/** Notes why a request fails, if it has a trace. */
export function noteFailure(outgoing: ServerResponse, error: unknown): void {
  traces.get(outgoing)?.failed(codeOf(error));
}

export function codeOf(error: unknown): string {
  return error instanceof InferenceError ? error.code : "internal";
}
