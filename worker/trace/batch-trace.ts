/**
 * The spans of a batch with sampled steps: a trace of its own, because the batch belongs to no
 * single request. Links lead from the batch to its steps, and back.
 */
import { newSpan, type SpanIds } from "#shared/trace/context.js";
import type { Span } from "#shared/trace/span.js";
import type { StateLookup, StatePlace } from "../sequence/states.js";
import type { Commit, StepTerms, StepTrace, TracedStep } from "./step-trace.js";

/** The most steps that a batch's span links to. */
const MOST_LINKS = 128;

/** When a batch took no further request, and why; without a reason if it does not run. */
export interface Closed {
  readonly at: number;
  readonly by: string | undefined;
}

export class BatchTrace {
  readonly ids = newSpan();
  readonly steps: readonly StepTrace[];
  readonly #terms: StepTerms;
  readonly #batch: readonly TracedStep[];
  readonly #closedAt: number;
  /** Sampled steps without a commit. */
  readonly #open: Set<StepTrace>;
  readonly #closedBy: string | undefined;
  /** How many states came from each place. */
  readonly #states = new Map<StatePlace, number>();
  #postedAt: number | undefined;
  #ran: { readonly startAt: number; readonly endAt: number; readonly runs: number } | undefined;

  /** @param steps the sampled steps of the batch */
  constructor(terms: StepTerms, batch: readonly TracedStep[], steps: readonly StepTrace[], closed: Closed) {
    this.#terms = terms;
    this.#batch = batch;
    this.#closedAt = closed.at;
    this.#closedBy = closed.by;
    this.steps = steps;
    this.#open = new Set(steps);
  }

  /** The requests of the batch. */
  get requests(): number {
    return this.#batch.length;
  }

  /** When the model had computed the batch, and when it began; undefined if it computed nothing. */
  get run(): { readonly startAt: number; readonly endAt: number } | undefined {
    return this.#ran;
  }

  /** The model's thread has the batch, with the states of its steps. */
  posted(): void {
    if (this.#postedAt !== undefined) return;
    this.#postedAt = performance.now();
    // All look-ups have ended, because the batch has run only with their states.
    for (const { state } of this.#batch) void state?.then((lookup) => this.#count(lookup));
  }

  #count(lookup: StateLookup): void {
    const place = lookup.kind === "found" ? lookup.place : undefined;
    if (place !== undefined) this.#states.set(place, (this.#states.get(place) ?? 0) + 1);
  }

  /** The main thread has the outputs. */
  ran({ ranMs, runs }: { readonly ranMs: number; readonly runs: number }): void {
    const endAt = performance.now();
    if (runs > 0) this.#ran = { startAt: endAt - ranMs, endAt, runs };
  }

  /** Notes that a step is committed. The commit of the last one ends the batch. */
  committed(step: StepTrace, commit: Commit): void {
    if (!this.#open.delete(step) || this.#open.size > 0 || this.#ran === undefined) return;
    const { provider } = this.#terms;
    this.#record("batch", this.ids, this.#closedAt, commit.endAt, undefined, {
      "baton.model": this.#terms.model,
      "baton.version": this.#terms.version,
      "baton.worker": this.#terms.worker,
      "baton.batch.rows": this.#batch.reduce((sum, { rows }) => sum + rows, 0),
      "baton.batch.requests": this.#batch.length,
      "baton.batch.closed_by": this.#closedBy,
      "baton.provider": provider,
    });
    const found = (place: StatePlace) => this.#states.get(place) ?? 0;
    const states = {
      "baton.state.start": found("start"),
      "baton.state.memory": found("memory"),
      "baton.state.redis": found("redis"),
      "baton.state.disk": this.#states.get("disk"),
    };
    const { startAt, endAt, runs } = this.#ran;
    this.#part("load states", this.#closedAt, this.#postedAt ?? startAt, states);
    this.#part("run", startAt, endAt, { "baton.runs": runs });
    this.#part("commit", commit.startAt, commit.endAt, {});
  }

  #part(name: string, startAt: number, endAt: number, attributes: Span["attributes"]): void {
    this.#record(name, newSpan(this.ids.traceId), startAt, endAt, this.ids.spanId, attributes);
  }

  #record(
    name: string,
    ids: SpanIds,
    startAt: number,
    endAt: number,
    parentId: string | undefined,
    attributes: Span["attributes"],
  ): void {
    const links = parentId === undefined ? this.steps.slice(0, MOST_LINKS).map(({ process }) => process) : [];
    this.#terms.tracer.record({ name, kind: "internal", ids, parentId, startAt, endAt, attributes, links });
  }
}
