/**
 * The trace of a sampled request on its way to a worker: members of its frame's metadata. An
 * unsampled request has none of them, and a worker of an earlier version ignores them. Two uses of
 * one Idempotency-Key may differ in them, so no digest of a request covers them.
 */
import { readTraceparent, writeTraceparent, type SpanIds } from "./context.js";

type Meta = Readonly<Record<string, unknown>>;

/** The trace of a request that a worker has. */
export interface Carried {
  /** The gateway's span of the admission. */
  readonly admitted: SpanIds;
  readonly state: string | undefined;
  /** The priority level; undefined if the model has none. */
  readonly level: number | undefined;
}

export function carriedMeta({ admitted, state, level }: Carried): Meta {
  return {
    trace: writeTraceparent(admitted),
    ...(state !== undefined && { tracestate: state }),
    ...(level !== undefined && { level }),
  };
}

/** @returns undefined if the request is not sampled */
export function carriedIn({ trace, tracestate, level }: Meta): Carried | undefined {
  if (trace === undefined) return undefined;
  const admitted = readTraceparent(trace);
  if (admitted === undefined) return undefined;
  return {
    admitted: { traceId: admitted.traceId, spanId: admitted.spanId },
    state: typeof tracestate === "string" ? tracestate : undefined,
    level: typeof level === "number" ? level : undefined,
  };
}
