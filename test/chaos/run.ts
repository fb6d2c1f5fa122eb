/**
 * A chaos run is an experiment that breaks a fleet by a seeded plan. A run that did not reach its
 * dose of faults proves nothing, and says so.
 */
import { join } from "node:path";
import { makeSecondRepository, ownConfig } from "../support/fleet/repository.js";
import type { Store } from "../support/fleet/store.js";
import { bySequence, type Requests } from "../support/sequences/history.js";
import { experiment } from "../support/sequences/experiment.js";
import { seededRandom } from "../support/fleet/random.js";
import { StreamLab } from "../support/streams/lab.js";
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
  /** The store beneath the fleet, already started; without this, one Redis. */
  readonly store?: Store;
  /** The number of buckets; without this, the fleet's default. */
  readonly buckets?: number;
  /** The number of tenants, and the header that names the tenant of a request. */
  readonly tenants?: { readonly count: number; readonly header: string };
  /** How many levels of priority the bystanders' model has. */
  readonly priorities?: number;
  /** How many streams of tokens run at a time beside the sequences; without this, none. */
  readonly streams?: number;
  /** Rolls out second versions of models in the middle of the run. */
  readonly rolled?: boolean;
  /** The folder for the fleet's logs. */
  readonly folder?: string;
  readonly note: (line: string) => void;
}

export async function runChaos(settings: ChaosSettings): Promise<ChaosReport> {
  const { seed, dose, durationMs, workers, gateways, leaseMs, tenants, priorities, rolled, store, folder, note } =
    settings;
  const streams = settings.streams ?? 0;
  const servers = store === undefined ? {} : { masters: store.masters, replicas: store.servers.length - store.masters };
  const plan = planFaults(dose, { ...settings, ...servers }, seededRandom(seed).fork("faults"));
  note(`seed ${seed}: ${plan.length} faults over ${durationMs / 1_000} s`);
  const configs = configurations(settings);
  const { broke, violations, shortfalls, numbers, history, requests } = await experiment({
    seed,
    fleet: {
      gateways,
      workers,
      leaseMs,
      models: streams === 0 ? models : [...models, GENERATOR],
      configs,
      env: environment(settings),
      ...(store === undefined ? {} : { store }),
      ...(folder === undefined ? {} : { folder }),
    },
    sequences: settings.sequences,
    steps: settings.steps,
    models: ["chain", "pill"],
    poison: dose.poison,
    spreadMs: durationMs,
    ...(tenants === undefined ? {} : { tenants: namesOf(tenants.count), tenantHeader: tenants.header }),
    ...(priorities === undefined ? {} : { priorities }),
    breaking: async (fleet, pace, history) => {
      const second = { as: "2", besideFirst: true, configs: fleet.configs } as const;
      const folder = join(fleet.folder, "models-rolled-out");
      const rolling = rolled === true ? { rolledOut: makeSecondRepository(folder, fleet.models, second) } : {};
      const breaking = () => inject(fleet, plan, { pace, note, ...rolling });
      if (streams === 0) return { faults: await breaking() };
      pace.hold();
      const asks = { count: streams, model: GENERATOR, tokens: TOKENS } as const;
      const [name] = namesOf(1);
      const tenant = tenants === undefined || name === undefined ? {} : { tenant: { name, header: tenants.header } };
      const lab = await StreamLab.over(fleet, { seed, asks, ...tenant });
      const { broke: faults, ...found } = await lab.underLoad({ name: "chaos", running: streams, breaking });
      history.elsewhere = lab.asked;
      await lab.close();
      return { faults, streams: found };
    },
  });
  return {
    seed,
    faults: broke.faults,
    violations: [...violations, ...(broke.streams?.violations ?? [])],
    shortfalls: [
      ...shortfalls,
      ...shortOf(dose, plan, broke.faults),
      ...(rolled === true ? shortOfVersions(requests) : []),
    ],
    ...(broke.streams === undefined ? {} : { streams: broke.streams.figures }),
    numbers,
    plan,
    history,
  };
}

const models = ["chain", "pill", "simple"];
const GENERATOR = "gen-mha";
/** The fewest and the most tokens of a stream. */
const TOKENS = [20, 160] as const;

const namesOf = (tenants: number) => Array.from({ length: tenants }, (_, i) => `tenant-${i + 1}`);

function environment({ buckets, tenants }: ChaosSettings): Record<string, string> {
  return {
    ...(buckets === undefined ? {} : { BATON_BUCKETS: String(buckets) }),
    ...(tenants === undefined ? {} : { BATON_TENANT_HEADER: tenants.header }),
  };
}

/** The changed configurations, by model. The other models run with their own. */
function configurations({ priorities, rolled }: ChaosSettings): Record<string, string> {
  const configs: Record<string, string> = {};
  const ownOf = (model: string) => ownConfig(model) ?? "";
  if (priorities !== undefined) {
    // A request that names no level has the lowest.
    const batching = `dynamic_batching { priority_levels: ${priorities} default_priority_level: ${priorities} `;
    configs["simple"] = ownOf("simple").replace("dynamic_batching { ", batching);
  }
  // The policy is there from the start, because a changed configuration would make the first
  // version another model.
  if (rolled === true) configs["chain"] = `${ownOf("chain")}version_policy { all { } }\n`;
  return configs;
}

/**
 * Clients send the last steps after all faults. Then both versions must have living sequences.
 * @returns the gaps of the roll-out, a sentence for each
 */
function shortOfVersions(requests: Requests): string[] {
  const last = [...bySequence(requests.values()).values()].flatMap((steps) => steps.at(-1)?.outcomes ?? []);
  const versions = new Set(last.flatMap((outcome) => (outcome.kind === "ok" ? [outcome.version] : [])));
  return ["1", "2"].flatMap((version) =>
    versions.has(version) ? [] : [`no sequence of version ${version} at the end`],
  );
}

/**
 * The share of the planned lost replies that must have struck. By chance an armed fault may find no
 * reply.
 */
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

function shortOf(dose: Dose, plan: readonly Fault[], done: FaultCounts): string[] {
  const replicaKills = plan.filter(({ kind }) => kind === "replicaKill").length;
  const missed = done.replicaKill < replicaKills ? [`replicaKill: ${done.replicaKill} of ${replicaKills}`] : [];
  const short = Object.entries(kindOf).flatMap(([planned, kind]) => {
    const wanted = dose[planned as keyof typeof kindOf];
    const needed = kind === "lostReply" ? Math.ceil(wanted * LOSSES_REACHED) : wanted;
    return done[kind] >= needed ? [] : [`${kind}: ${done[kind]} of ${needed}`];
  });
  return [...short, ...missed];
}
