/**
 * Decides whether a request is sampled: once, at the front door, and before any span exists. All
 * other code finds a trace beside the request, or nothing.
 */
import { newSpan, readTraceparent, readTracestate, type SpanIds } from "./context.js";

/** A sampled request. */
export interface Sampled {
  /** The span for the request's stay in the process that decides. */
  readonly ids: SpanIds;
  /** The caller's span; undefined if the trace begins here. */
  readonly parentId: string | undefined;
  /** The caller's `tracestate`, for the callers of all further spans. */
  readonly state: string | undefined;
}

/**
 * @param rate the share of requests to sample, from 0 to 1, if the caller does not decide
 * @returns undefined if the request is not sampled
 */
export function decide(
  headers: Readonly<Partial<Record<string, unknown>>>,
  rate: number,
  random = Math.random,
): Sampled | undefined {
  const caller = readTraceparent(headers["traceparent"]);
  if (caller === undefined) {
    if (rate === 0 || random() >= rate) return undefined;
    return { ids: newSpan(), parentId: undefined, state: undefined };
  }
  if (!caller.sampled) return undefined;
  return { ids: newSpan(caller.traceId), parentId: caller.spanId, state: readTracestate(headers["tracestate"]) };
}
