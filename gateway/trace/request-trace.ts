/**
 * The trace of a sampled request in this gateway: the server span, from the request's head to the
 * end of its answer. Other parts note what they learn, and make spans below it.
 */
import { newSpan, writeTraceparent, type SpanIds } from "#shared/trace/context.js";
import type { Sampled } from "#shared/trace/decision.js";
import type { Attributes, Span, Tracer } from "#shared/trace/span.js";
import type { AdmittingTrace } from "./admit-span.js";

/** The facts of the server span that are known at its beginning. */
export interface ServerSpan {
  /** Method and pattern of the path. */
  readonly name: string;
  /** On `performance.now()`'s clock. */
  readonly startAt: number;
  readonly attributes: Attributes;
}

export class RequestTrace implements AdmittingTrace {
  readonly state: string | undefined;
  readonly #tracer: Tracer;
  readonly #sampled: Sampled;
  readonly #span: ServerSpan;
  readonly #noted: Record<string, Attributes[string]> = {};
  readonly #links: SpanIds[] = [];
  #error: string | undefined;
  #hasEnded = false;

  constructor(tracer: Tracer, sampled: Sampled, span: ServerSpan) {
    this.#tracer = tracer;
    this.#sampled = sampled;
    this.#span = span;
    this.state = sampled.state;
  }

  get id(): string {
    return this.#sampled.ids.traceId;
  }

  /** The server span. */
  get server(): SpanIds {
    return this.#sampled.ids;
  }

  /** The header of the answer that names the trace. */
  get traceresponse(): string {
    return writeTraceparent(this.#sampled.ids);
  }

  /** Adds attributes to the server span. */
  note(attributes: Attributes): void {
    Object.assign(this.#noted, attributes);
  }

  /** Links the server span to a span of another trace. */
  link(other: SpanIds): void {
    this.#links.push(other);
  }

  /** Notes the code of the error that the client gets. */
  failed(code: string): void {
    this.#error = code;
  }

  /** The ids of a span below the server span. */
  child(): SpanIds {
    return newSpan(this.#sampled.ids.traceId);
  }

  /** Records a span below the server span. */
  record(span: Omit<Span, "parentId" | "state">): void {
    this.#tracer.record({ ...span, parentId: this.#sampled.ids.spanId, state: this.state });
  }

  /** Ends the server span, once. */
  end(status: number): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const { name, startAt, attributes } = this.#span;
    const { ids, parentId, state } = this.#sampled;
    this.#tracer.record({
      name,
      kind: "server",
      ids,
      parentId,
      state,
      startAt,
      endAt: performance.now(),
      attributes: { ...attributes, ...this.#noted, "http.response.status_code": status },
      links: this.#links,
      error: this.#error ?? (status >= 500 ? String(status) : undefined),
    });
  }
}
