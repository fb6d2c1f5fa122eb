/**
 * The settings of traces, in Triton's form. A change holds for the whole deployment or for one
 * model: Redis keeps the change, and every gateway takes it over with its next look at the fleet.
 */
import { InferenceError } from "#shared/errors.js";
import { changeTraceFields, traceField } from "#shared/queue/trace-settings.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { changeInRedis } from "../../admission/ask-redis.js";
import type { TraceLevel, TraceRates } from "../../trace/rates.js";
import type { Caller } from "../caller.js";
import { needOperator } from "./operators.js";

/** A member is undefined if the client does not change it, and null if the client resets it. */
export interface TraceChange {
  readonly level: TraceLevel | null | undefined;
  /** A whole number. */
  readonly rate: string | null | undefined;
}

export interface ShownTraces {
  readonly trace_level: readonly TraceLevel[];
  readonly trace_rate: string;
  readonly trace_count: string;
  readonly log_frequency: string;
  readonly trace_file: string;
  readonly trace_mode: string;
}

/** Members of Triton that have one value here: Baton sends all traces to one address. */
export const fixedTraces = { trace_count: "-1", log_frequency: "0", trace_file: "", trace_mode: "opentelemetry" };

export interface TraceServiceTerms {
  readonly redis: RedisClient;
  readonly rates: TraceRates;
  /** Whether a proxy's header says whose a request is. */
  readonly hasTenantHeader: boolean;
  /** Called with each change. */
  readonly onChange: (change: object) => void;
}

export class TraceService {
  readonly #terms: TraceServiceTerms;

  constructor(terms: TraceServiceTerms) {
    this.#terms = terms;
  }

  /** @param model undefined for the whole deployment */
  show(model: string | undefined): ShownTraces {
    const { rates } = this.#terms;
    return { trace_level: [rates.level(model)], trace_rate: rates.rate(model), ...fixedTraces };
  }

  /**
   * Whether the caller may look at and reset the settings of a model that no worker serves: they
   * stay until an operator resets them, and count again when a worker serves the model.
   */
  isKept({ mayUse }: Caller, model: string): boolean {
    return mayUse(model) && this.#terms.rates.isChanged(model);
  }

  /**
   * @param model undefined for the whole deployment
   * @returns the settings after the change
   * @throws InferenceError
   */
  async change(caller: Caller, model: string | undefined, { level, rate }: TraceChange): Promise<ShownTraces> {
    const { redis, rates, hasTenantHeader, onChange } = this.#terms;
    needOperator(caller, hasTenantHeader);
    const changes = new Map<string, string | undefined>();
    if (level !== undefined) changes.set(traceField(model, "level"), level ?? undefined);
    if (rate !== undefined) changes.set(traceField(model, "rate"), rate ?? undefined);
    // Clients of Triton may ask for no change, to see the settings.
    if (changes.size === 0) return this.show(model);
    if (!rates.isSetUp) throw new InferenceError("invalid_argument", "tracing is not set up");
    const fields = await changeInRedis(() => changeTraceFields(redis, changes));
    if (fields === undefined) throw new InferenceError("invalid_argument", "too many models have a trace setting");
    rates.take(fields);
    onChange({ model, level, rate });
    return this.show(model);
  }
}
