/** One chaos run: an experiment whose breaking is a seeded plan. A run whose dose was not reached proves nothing, and says so. */
import { experiment } from "../history/experiment.js";
import { seededRandom } from "../setup/random.js";
import { inject, type FaultCounts } from "./inject.js";
import { planFaults, type Dose, type Fault } from "./plan.js";
import type { ChaosReport } from "./report.js";

export interface ChaosSettings {
  readonly seed: number;
  readonly dose: Dose;
  readonly durationMs: number;
  readonly sequences: number;
  readonly steps: number;
  readonly workers: number;
  readonly gateways: number;
  readonly leaseMs: number;
  /** The fleet's logs are left here. */
  readonly folder?: string;
  readonly note: (line: string) => void;
}

export async function runChaos(settings: ChaosSettings): Promise<ChaosReport> {
  const { seed, dose, durationMs, workers, gateways, leaseMs, folder, note } = settings;
  const plan = planFaults(dose, settings, seededRandom(seed).fork("faults"));
  note(`seed ${seed}: ${plan.length} faults over ${durationMs / 1_000} s`);
  const { broke, violations, shortfalls, numbers, history } = await experiment({
    seed,
    fleet: {
      gateways,
      workers,
      leaseMs,
      models: ["chain", "pill", "simple"],
      ...(folder === undefined ? {} : { folder }),
    },
    sequences: settings.sequences,
    steps: settings.steps,
    models: ["chain", "pill"],
    poison: dose.poison,
    spreadMs: durationMs,
    breaking: (fleet, pace) => inject(fleet, plan, pace, note),
  });
  return {
    seed,
    faults: broke,
    violations,
    shortfalls: [...shortfalls, ...shortOf(dose, broke)],
    numbers,
    plan,
    history,
  };
}

/** The share of lost replies that must have struck: chance may let an armed one pass. */
const LOSSES_REACHED = 0.66;

const kindOf: Readonly<Record<Exclude<keyof Dose, "poison">, Fault["kind"]>> = {
  workerKills: "workerKill",
  workerFreezes: "workerFreeze",
  gatewayKills: "gatewayKill",
  redisKills: "redisKill",
  redisResets: "redisReset",
  redisStalls: "redisStall",
  lostReplies: "lostReply",
  natsKills: "natsKill",
  natsResets: "natsReset",
};

function shortOf(dose: Dose, done: FaultCounts): string[] {
  return Object.entries(kindOf).flatMap(([planned, kind]) => {
    const wanted = dose[planned as keyof typeof kindOf];
    const needed = kind === "lostReply" ? Math.ceil(wanted * LOSSES_REACHED) : wanted;
    return done[kind] >= needed ? [] : [`${kind}: ${done[kind]} of ${needed}`];
  });
}
