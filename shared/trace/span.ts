/** A span as Baton's processes make it: after its end, in one piece. */
import type { SpanIds } from "./context.js";

/** An undefined value is left out. No value is a prompt, a tensor, a header's value or a key. */
export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** Times are on `performance.now()`'s clock. */
export interface Span {
  /** A pattern, such as `POST /v2/models/{model}/infer`; never with a text of a client. */
  readonly name: string;
  readonly kind: "server" | "producer" | "consumer" | "internal";
  readonly ids: SpanIds;
  /** Undefined for the first span of a trace. */
  readonly parentId: string | undefined;
  /** The caller's `tracestate`. */
  readonly state?: string | undefined;
  readonly startAt: number;
  readonly endAt: number;
  readonly attributes: Attributes;
  /** Spans of other traces. */
  readonly links?: readonly SpanIds[];
  readonly events?: readonly SpanEvent[];
  /** The code of the error that the span ended with; absent if it ended well. */
  readonly error?: string | undefined;
}

export interface SpanEvent {
  readonly name: string;
  readonly at: number;
  readonly attributes: Attributes;
}

/**
 * Takes the spans of sampled requests. A process without tracing has no tracer, and then makes no
 * span either.
 */
export interface Tracer {
  /** Never waits and never throws. */
  record(span: Span): void;
}
