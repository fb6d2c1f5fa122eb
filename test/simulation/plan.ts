/**
 * The plan of a run, drawn from its seed: the size of the fleet and of its load, the weather, and
 * which processes faults strike, and when.
 */
import type { Random } from "../support/fleet/random.js";
import type { Weather } from "./chaos.js";
import type { LoadPlan } from "./load.js";
import type { ModelPlan } from "./model.js";

const kinds = [
  "worker dies",
  "worker leaves",
  "gateway dies",
  "worker freezes",
  "gateway freezes",
  "redis is away",
  "nats is away",
] as const;

/** A fault that strikes a single process. */
export interface Strike {
  readonly at: number;
  readonly kind: (typeof kinds)[number];
  /** Says which process, from 0 to below 1. */
  readonly lot: number;
  /** Length of the fault, in ms. */
  readonly ms: number;
}

export interface RunPlan {
  readonly gateways: number;
  readonly workers: number;
  readonly buckets: number;
  readonly durationMs: number;
  readonly load: LoadPlan;
  /** `slow` is the share of model runs that take long. */
  readonly model: Omit<ModelPlan, "runMs"> & { readonly slow: number };
  readonly weather: Weather;
  readonly strikes: readonly Strike[];
}

export function planRun(random: Random): RunPlan {
  const durationMs = random.between(4_000, 7_000);
  // Each kind of fault strikes in some runs only, because many faults at once hide each other.
  const rate = (most: number) => (random.chance(0.5) ? 0 : most * random.unit() ** 2);
  const some = (most: number) => (random.chance(0.4) ? 0 : random.between(1, most));
  const steps = random.between(4, 12);
  // With so many steps under way at once, gateways park requests.
  const crowd = random.chance(0.15) ? 12 : 0;
  const isDense = crowd > 0 || random.chance(0.2);
  return {
    gateways: random.between(1, 3),
    workers: random.between(1, 4),
    buckets: random.pick([1, 1, 2, 3]),
    durationMs,
    load: {
      keyed: random.between(0, 6) + crowd,
      numbered: random.between(0, 4),
      keyless: random.between(1, 6) + crowd,
      steps,
      hurried: random.chance(0.4) ? 0.4 * random.unit() : 0,
      pauseMs: isDense ? 5 : (1.6 * durationMs) / steps,
    },
    model: {
      maxBatchSize: random.pick([1, 2, 8]),
      maxDelayMs: random.pick([0, 0, 3]),
      takes: random.pick([1, 4, 16]),
      history: random.pick([1, 1, 3]),
      slow: rate(0.3),
    },
    weather: {
      cutOff: rate(0.06),
      lostReply: rate(0.1),
      late: rate(0.06),
      slow: rate(0.2),
      nats: { lose: rate(0.7), delay: rate(0.3), double: rate(0.3) },
    },
    strikes: kinds
      .flatMap((kind) =>
        Array.from({ length: some(kind.startsWith("gateway") ? 2 : 4) }, () =>
          strike(kind, isDense ? 1_500 : durationMs, random),
        ),
      )
      .sort((a, b) => a.at - b.at),
  };
}

function strike(kind: Strike["kind"], spanMs: number, random: Random): Strike {
  const ms = random.chance(0.7) ? random.between(50, 900) : random.between(900, 3_500);
  return { at: random.between(300, spanMs), kind, lot: random.unit(), ms };
}
