/**
 * The trace of one run of a job, or of one line of a batch. The run may begin days after the
 * submission, and a submission may have many runs, so each run has a trace of its own, with a link
 * to the submission.
 */
import { newSpan, type SpanIds } from "#shared/trace/context.js";
import type { Span, Tracer } from "#shared/trace/span.js";
import type { AdmittingTrace } from "./admit-span.js";

export class JobTrace implements AdmittingTrace {
  readonly state = undefined;
  readonly #tracer: Tracer;
  readonly #submission: SpanIds;
  /** The trace begins with the admission of the run. */
  readonly #first = newSpan();

  /** @param submission the span of the request that has submitted the job, its schedule or batch */
  constructor(tracer: Tracer, submission: SpanIds) {
    this.#tracer = tracer;
    this.#submission = submission;
  }

  get id(): string {
    return this.#first.traceId;
  }

  child(): SpanIds {
    return this.#first;
  }

  /** The span of the admission has all attributes, because there is none above it. */
  note(): void {}

  record(span: Omit<Span, "parentId" | "state">): void {
    this.#tracer.record({ ...span, parentId: undefined, links: [this.#submission] });
  }
}
