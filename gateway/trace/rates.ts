/**
 * Which share of requests to trace: by the setting of the process, unless an operator has changed
 * the level or the rate for the deployment or for a model.
 */
import { traceField, type TraceFields } from "#shared/queue/trace-settings.js";
import type { Tracer } from "#shared/trace/span.js";

/** `OFF`: no request is traced, even if its client records the trace. */
export type TraceLevel = "TIMESTAMPS" | "OFF";

export class TraceRates {
  /** Whether this gateway makes traces at all. */
  readonly isSetUp: boolean;
  readonly #sample: number;
  #fields: TraceFields = new Map<string, string>();

  /** @param sample `BATON_TRACE_SAMPLE` */
  constructor(isSetUp: boolean, sample: number) {
    this.isSetUp = isSetUp;
    this.#sample = sample;
  }

  /** Takes over the values that operators have changed. */
  take(fields: TraceFields): void {
    this.#fields = fields;
  }

  /** Whether an operator has changed a value for this model. */
  isChanged(model: string): boolean {
    return this.#fields.has(traceField(model, "level")) || this.#fields.has(traceField(model, "rate"));
  }

  /**
   * The share of a model's requests to trace if their clients do not decide, from 0 to 1.
   * @param model undefined or empty if the request names none
   * @returns undefined if no request of the model is traced
   */
  sampleOf(model: string | undefined): number | undefined {
    if (this.#fields.size === 0) return this.#sample;
    if (this.level(model) === "OFF") return undefined;
    const rate = this.#changed(model, "rate");
    if (rate === undefined) return this.#sample;
    return rate === "0" ? 0 : 1 / Number(rate);
  }

  /** Gives the tracer for requests that were sampled before, unless traces are switched off. */
  tracerOf(model: string, tracer: Tracer): Tracer | undefined {
    return this.level(model) === "OFF" ? undefined : tracer;
  }

  /** @param model undefined for the whole deployment */
  level(model: string | undefined): TraceLevel {
    return this.isSetUp && this.#changed(model, "level") !== "OFF" ? "TIMESTAMPS" : "OFF";
  }

  /**
   * One request of so many is traced; "0" if clients alone decide.
   * @param model undefined for the whole deployment
   */
  rate(model: string | undefined): string {
    return this.#changed(model, "rate") ?? (this.#sample === 0 ? "0" : String(Math.round(1 / this.#sample)));
  }

  /** The value of the model goes before the value of the deployment. */
  #changed(model: string | undefined, setting: "level" | "rate"): string | undefined {
    const fields = this.#fields;
    const own = model === undefined || model === "" ? undefined : fields.get(traceField(model, setting));
    return own ?? fields.get(traceField(undefined, setting));
  }
}
