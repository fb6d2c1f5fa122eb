/**
 * The traces of a model's sampled steps at this worker, by their deliveries. A worker without
 * tracing has none of these objects. For a step that is not sampled, nothing here reads a clock.
 */
import { readOutcome, type StoredOutcome } from "#shared/contract/outcome.js";
import type { Delivery } from "#shared/queue/entry.js";
import { carriedIn } from "#shared/trace/carried.js";
import { BatchTrace } from "./batch-trace.js";
import { StepTrace, type Beginning, type Commit, type Phase, type StepTerms, type TracedStep } from "./step-trace.js";
import { StreamTrace } from "./stream-trace.js";

/** A step that is about to be committed. */
interface Settling {
  readonly delivery: Delivery;
  readonly outcome: StoredOutcome;
}

interface Traced {
  readonly trace: StepTrace;
  readonly beginning: () => Beginning | undefined;
  readonly phases: () => readonly Phase[];
  readonly committed: (commit: Commit) => void;
}

export class StepTraces {
  readonly #terms: StepTerms;
  readonly #traced = new WeakMap<Delivery, Traced>();
  /** How many steps in the holdings are traced; mostly none. */
  #open = 0;
  /** For each delivery that another worker had before, that worker, and how many had it. */
  readonly #takenFrom = new WeakMap<Delivery, { readonly worker: string; readonly times: number | undefined }>();

  constructor(terms: StepTerms) {
    this.#terms = terms;
  }

  /**
   * Notes that this worker has taken steps over from another worker.
   * @param times by entry: to how many workers Redis has given it, this one included
   */
  takenOver(
    deliveries: readonly Delivery[],
    { worker, times }: { readonly worker: string; readonly times: ReadonlyMap<string, number> },
  ): void {
    for (const delivery of deliveries) this.#takenFrom.set(delivery, { worker, times: times.get(delivery.entry) });
  }

  /**
   * Begins the trace of a batch that was closed now. Forgets an earlier batch with the same steps.
   * @param closedBy why; absent if the batch does not run
   * @returns undefined if no step is sampled
   */
  beginBatch(batch: readonly TracedStep[], closedBy?: string): BatchTrace | undefined {
    if (!batch.some(isSampled)) return undefined;
    const sampled = batch.flatMap((step) => {
      const trace = this.#traceOf(step);
      return trace === undefined ? [] : [{ trace, delivery: step.delivery }];
    });
    if (sampled.length === 0) return undefined;
    const traces = sampled.map(({ trace }) => trace);
    const whole = new BatchTrace(this.#terms, batch, traces, { at: performance.now(), by: closedBy });
    for (const { trace, delivery } of sampled) {
      const takeover = this.#takeoverOf(delivery);
      this.#trace(delivery, {
        trace,
        beginning: () =>
          whole.run && { startAt: whole.run.startAt, together: whole.requests, batch: whole.ids, takeover },
        phases: () =>
          whole.run === undefined ? [] : [{ name: "run", ...whole.run, attributes: { "baton.rows": trace.rows } }],
        committed: (commit) => whole.committed(trace, commit),
      });
    }
    return whole;
  }

  /**
   * Begins the trace of a stream that the engine gets now.
   * @param index of the next record
   * @returns undefined if the stream is not sampled
   */
  beginStream(step: TracedStep, index: number): StreamTrace | undefined {
    const trace = this.#traceOf(step);
    if (trace === undefined) return undefined;
    const stream = new StreamTrace();
    const { startAt } = stream;
    const { delivery } = step;
    const takeover = this.#takeoverOf(delivery, index);
    this.#trace(delivery, {
      trace,
      beginning: () => ({ startAt, together: 1, takeover }),
      phases: () => stream.phases(),
      committed: () => undefined,
    });
    return stream;
  }

  /**
   * Ends the trace of a step that has left the holdings. Most steps have left after their commit,
   * and their traces have ended. The others are left to another worker, or to another try.
   */
  left(delivery: Delivery): void {
    const traced = this.#open === 0 ? undefined : this.#traced.get(delivery);
    if (traced === undefined) return;
    this.#forget(delivery);
    const beginning = traced.beginning();
    if (beginning !== undefined) traced.trace.record(beginning, traced.phases(), undefined);
  }

  /**
   * To be called when a commit begins.
   * @returns a function to call with the fates of the steps; undefined if none is sampled
   */
  committing(settled: readonly Settling[]): ((fates: readonly string[]) => void) | undefined {
    if (this.#open === 0) return undefined;
    const sampled = settled.flatMap(({ delivery, outcome }, i) => {
      const traced = this.#traced.get(delivery);
      return traced === undefined ? [] : [{ traced, delivery, outcome, i }];
    });
    if (sampled.length === 0) return undefined;
    const startAt = performance.now();
    return (fates) => {
      const endAt = performance.now();
      for (const { traced, delivery, outcome, i } of sampled) {
        this.#forget(delivery);
        end(traced, { startAt, endAt, fate: fates[i] ?? "lost" }, outcome);
      }
    };
  }

  #trace(delivery: Delivery, traced: Traced): void {
    if (!this.#traced.has(delivery)) this.#open++;
    this.#traced.set(delivery, traced);
  }

  #forget(delivery: Delivery): void {
    if (this.#traced.delete(delivery)) this.#open--;
  }

  #traceOf(step: TracedStep): StepTrace | undefined {
    const carried = carriedIn(step.request.meta);
    return carried && new StepTrace(this.#terms, step, carried);
  }

  #takeoverOf(delivery: Delivery, index?: number): Beginning["takeover"] {
    const from = this.#takenFrom.get(delivery);
    return from && { from: from.worker, times: from.times, index };
  }
}

/** Records the spans of a step. A step that no model has run begins with its commit. */
function end({ trace, beginning, phases, committed }: Traced, commit: Commit, outcome: StoredOutcome): void {
  const begun = beginning() ?? { startAt: commit.startAt, together: 1 };
  // Only a commit that took effect says how the request ended.
  const ended = commit.fate === "committed" ? readOutcome(outcome.kind, outcome.body) : undefined;
  trace.record(begun, phases(), commit, ended?.kind === "error" ? ended.code : undefined);
  committed(commit);
}

/** Whether a step may have a trace, which most steps have not. */
function isSampled({ request }: TracedStep): boolean {
  return request.meta["trace"] !== undefined;
}
