/**
 * The spans of one sampled step at this worker. The worker notes times while the step runs, and
 * makes the spans at the end, because only then it knows them whole.
 */
import { decodeCorrelationId } from "#shared/contract/sequence.js";
import { encodedIdOf, encodeRequestId } from "#shared/queue/address.js";
import type { Delivery } from "#shared/queue/entry.js";
import type { FrameMeta } from "#shared/frame.js";
import type { Carried } from "#shared/trace/carried.js";
import { newSpan, type SpanIds } from "#shared/trace/context.js";
import type { StateLookup } from "../sequence/states.js";
import type { Attributes, Span, SpanEvent, Tracer } from "#shared/trace/span.js";

/** The facts that traces need of a step. All times here are on `performance.now()`'s clock. */
export interface TracedStep {
  readonly delivery: Delivery;
  readonly request: { readonly meta: FrameMeta };
  readonly admittedAt: number;
  readonly rows: number;
  /** The state that the step continues; absent for a stream. */
  readonly state?: Promise<StateLookup>;
}

/** A part of the work on a step, between its begin and its commit. */
export interface Phase {
  readonly name: "run" | "prefill" | "decode";
  readonly startAt: number;
  readonly endAt: number;
  readonly attributes: Attributes;
}

/** How the work on a step began. */
export interface Beginning {
  readonly startAt: number;
  /** The requests that run together. */
  readonly together: number;
  /** The batch's span; absent for a stream. */
  readonly batch?: SpanIds | undefined;
  /** Absent if no other worker had the step before. */
  readonly takeover?:
    | {
        readonly from: string;
        /** To how many workers Redis has given the step. */
        readonly times: number | undefined;
        readonly index?: number | undefined;
      }
    | undefined;
}

export interface Commit {
  readonly startAt: number;
  readonly endAt: number;
  readonly fate: string;
}

export interface StepTerms {
  readonly tracer: Tracer;
  readonly worker: string;
  readonly model: string;
  readonly version: string;
  /** The execution provider; undefined if it is not known. */
  readonly provider?: string | undefined;
}

export class StepTrace {
  readonly process: SpanIds;
  readonly #terms: StepTerms;
  readonly #step: TracedStep;
  readonly #carried: Carried;
  readonly #common: Attributes;

  constructor(terms: StepTerms, step: TracedStep, carried: Carried) {
    this.process = newSpan(carried.admitted.traceId);
    this.#terms = terms;
    this.#step = step;
    this.#carried = carried;
    this.#common = commonOf(terms, step.delivery);
  }

  get rows(): number {
    return this.#step.rows;
  }

  /**
   * Records all spans of the step, which is over here.
   * @param commit undefined if the step was left to another worker
   */
  record(beginning: Beginning, phases: readonly Phase[], commit: Commit | undefined, error?: string): void {
    const { startAt, together, batch, takeover } = beginning;
    this.#recordQueue(startAt, takeover === undefined ? 1 : takeover.times);
    for (const { name, attributes, ...times } of phases) this.#recordPart(name, times, attributes);
    if (commit !== undefined) this.#recordPart("commit", commit, { "baton.fate": commit.fate });
    const attributes = {
      "messaging.system": "redis",
      "messaging.operation.type": "process",
      "messaging.batch.message_count": together,
      "baton.worker": this.#terms.worker,
    };
    const endAt = commit?.endAt ?? phases.at(-1)?.endAt ?? startAt;
    const events = takeover === undefined ? [] : [this.#takeoverEvent(startAt, takeover)];
    const links = batch === undefined ? [] : [batch];
    const span = { name: "process", kind: "consumer", ids: this.process, startAt, endAt, attributes } as const;
    this.#record({ ...span, events, links, error }, this.#carried.admitted);
  }

  /**
   * Records the wait from the admission to the begin of the work here. A worker that died has sent
   * no such span, or one of its own wait.
   */
  #recordQueue(endAt: number, deliveries: number | undefined): void {
    const { level } = this.#carried;
    // The clocks of two machines may differ a little.
    const startAt = Math.min(this.#step.admittedAt, endAt);
    const attributes = { "baton.queue.level": level, "baton.deliveries": deliveries };
    const ids = newSpan(this.process.traceId);
    this.#record({ name: "queue", kind: "internal", ids, startAt, endAt, attributes }, this.#carried.admitted);
  }

  #recordPart(name: string, { startAt, endAt }: Pick<Span, "startAt" | "endAt">, attributes: Attributes): void {
    const ids = newSpan(this.process.traceId);
    this.#record({ name, kind: "internal", ids, startAt, endAt, attributes }, this.process);
  }

  #record(span: Omit<Span, "parentId" | "state">, parent: SpanIds): void {
    const { state } = this.#carried;
    const attributes = { ...this.#common, ...span.attributes };
    this.#terms.tracer.record({ ...span, attributes, parentId: parent.spanId, state });
  }

  /** The client has waited since the admission. */
  #takeoverEvent(at: number, { from, index }: NonNullable<Beginning["takeover"]>): SpanEvent {
    const { delivery, admittedAt } = this.#step;
    const attributes = {
      "baton.takeover.from": from,
      "baton.takeover.to": this.#terms.worker,
      "baton.takeover.index": index,
      "baton.takeover.step": delivery.sequence === undefined ? undefined : delivery.number,
      "baton.takeover.waited_ms": Math.round(at - admittedAt),
    };
    return { name: "takeover", at, attributes };
  }
}

function commonOf({ model, version }: StepTerms, delivery: Delivery): Attributes {
  const { sequence, number, tenant } = delivery;
  return {
    "baton.model": model,
    "baton.version": version,
    "baton.request": encodeRequestId(delivery),
    "baton.tenant": tenant,
    "baton.sequence": sequence && String(decodeCorrelationId(encodedIdOf(sequence)).value),
    "baton.step": sequence === undefined ? undefined : number,
  };
}
