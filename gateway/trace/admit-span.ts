/** The span of a request's admission, which is the parent of the worker's spans. */
import { pinOf, encodeRequestId, type RequestAddress } from "#shared/queue/address.js";
import { laneKeys } from "#shared/queue/keys.js";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { SequenceStep } from "#shared/contract/sequence.js";
import { InferenceError } from "#shared/errors.js";
import type { FrameMeta } from "#shared/frame.js";
import { carriedMeta } from "#shared/trace/carried.js";
import type { SpanIds } from "#shared/trace/context.js";
import type { Attributes, Span } from "#shared/trace/span.js";

/** The facts that the span tells of a request. */
export interface AdmittedRequest {
  readonly model: ServedModel;
  readonly sequence: SequenceStep | undefined;
  readonly queue?: { readonly level: number } | undefined;
}

/** The trace in which a request is admitted. */
export interface AdmittingTrace {
  readonly id: string;
  /** The caller's `tracestate`. */
  readonly state: string | undefined;
  /** Gives the ids of the admission's span. */
  child(): SpanIds;
  /** Takes the facts of the request. */
  note(attributes: Attributes): void;
  record(span: Omit<Span, "parentId" | "state">): void;
}

export class AdmitSpan {
  readonly ids: SpanIds;
  readonly #trace: AdmittingTrace;
  readonly #startAt = performance.now();
  /** Requests in the last call with this request. */
  #together = 0;
  /** What Redis last said. */
  #said = "";

  constructor(trace: AdmittingTrace) {
    this.#trace = trace;
    this.ids = trace.child();
  }

  /** To be called when a call with so many requests goes to Redis. */
  readonly called = (together: number): void => {
    this.#together = together;
  };

  heard(said: string): void {
    this.#said = said;
  }

  /** The trace, for the frame's metadata. */
  meta({ queue }: AdmittedRequest): FrameMeta {
    return carriedMeta({ admitted: this.ids, state: this.#trace.state, level: queue?.level });
  }

  /** @param error why the request was refused; undefined if it was admitted */
  end(request: AdmittedRequest, address: RequestAddress, error?: unknown): void {
    const { model, sequence } = request;
    const common = {
      "baton.model": model.name,
      "baton.version": model.version,
      "baton.request": encodeRequestId(address),
      "baton.tenant": address.tenant,
      "baton.sequence": sequence && String(sequence.id.value),
      "baton.step": sequence?.number,
    };
    this.#trace.note(common);
    this.#trace.record({
      name: "admit",
      kind: "producer",
      ids: this.ids,
      startAt: this.#startAt,
      endAt: performance.now(),
      attributes: {
        ...common,
        "messaging.system": "redis",
        "messaging.operation.type": "send",
        "messaging.destination.name": laneKeys({ bucket: address.bucket, model: model.name, ...pinOf(model) }).ready,
        "baton.bucket": address.bucket,
        "baton.admission.requests": this.#together,
        "baton.admission.said": this.#said,
      },
      error: error === undefined ? undefined : error instanceof InferenceError ? error.code : "internal",
    });
  }
}
