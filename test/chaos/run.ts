/**
 * A chaos run is an experiment that breaks a fleet by a seeded plan. A run that did not reach its
 * dose of faults proves nothing, and says so.
 */
import { join } from "node:path";
import type { DoorName } from "../support/doors/doors.js";
import type { Fleet } from "../support/fleet/fleet.js";
import { addSecondVersions, makeSecondRepository } from "../support/fleet/repository.js";
import type { Store } from "../support/fleet/store.js";
import { bySequence, type Requests } from "../support/sequences/history.js";
import { experiment } from "../support/sequences/experiment.js";
import { seededRandom } from "../support/fleet/random.js";
import { StreamLab } from "../support/streams/lab.js";
import { inject, type FaultCounts, type RollOuts } from "./inject.js";
import { configurations, GENERATOR, levels, stateless, withSequences } from "./models.js";
import { planFaults, type Dose, type Fault, type RollOut } from "./plan.js";
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
  /** How many streams of tokens run at a time beside the sequences; without this, none. */
  readonly streams?: number;
  /** How second versions are rolled out in the middle of the run; absent if they are not. */
  readonly rolled?: RollOut;
  /** The folder for the fleet's logs. */
  readonly folder?: string;
  readonly note: (line: string) => void;
}

export async function runChaos(settings: ChaosSettings): Promise<ChaosReport> {
  const { seed, dose, durationMs, workers, gateways, leaseMs, tenants, rolled, store, folder, note } = settings;
  const streams = settings.streams ?? 0;
  const servers = store === undefined ? {} : { masters: store.masters, replicas: store.servers.length - store.masters };
  const plan = planFaults(dose, { ...settings, ...servers }, seededRandom(seed).fork("faults"));
  note(`seed ${seed}: ${plan.length} faults over ${durationMs / 1_000} s`);
  const { broke, violations, shortfalls, numbers, history, requests } = await experiment({
    seed,
    fleet: {
      gateways,
      workers,
      leaseMs,
      grpc: true,
      models: [...withSequences, ...stateless, ...(streams === 0 ? [] : [GENERATOR])],
      configs: configurations(rolled !== undefined),
      env: environment(settings),
      ...(rolled === "poll" && { workerEnv: polling }),
      ...(store === undefined ? {} : { store }),
      ...(folder === undefined ? {} : { folder }),
    },
    sequences: settings.sequences,
    steps: settings.steps,
    models: withSequences,
    doors: doorsInTurn,
    beside: ["simple", "cached", "tells", "crowd"],
    leaves: LEAVES,
    numbered: NUMBERED,
    levels,
    poison: dose.poison,
    spreadMs: durationMs,
    ...(tenants === undefined ? {} : { tenants: namesOf(tenants.count), tenantHeader: tenants.header }),
    breaking: async (fleet, pace, history) => {
      const rolling = rolled === undefined ? {} : { rollOut: rollOutOf(fleet) };
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
      ...(rolled === undefined ? [] : shortOfVersions(requests)),
    ],
    ...(broke.streams === undefined ? {} : { streams: broke.streams.figures }),
    numbers,
    plan,
    history,
  };
}

/** The fewest and the most tokens of a stream. */
const TOKENS = [20, 160] as const;
/** Clients of sequences take the doors in turn. */
const doorsInTurn: readonly DoorName[] = ["http", "grpc-call", "grpc-stream", "grpc-unordered"];
/** The share of occasions at which a client of gRPC leaves, so that it has to resume elsewhere. */
const LEAVES = 0.02;
/** The share of sequences whose clients number their steps. */
const NUMBERED = 0.3;
/** How often workers that poll look at their repository, in ms. */
const POLL_MS = 200;

const namesOf = (tenants: number) => Array.from({ length: tenants }, (_, i) => `tenant-${i + 1}`);

const polling = { BATON_MODEL_CONTROL: "poll", BATON_REPOSITORY_POLL_MS: String(POLL_MS) };

function rollOutOf({ folder, models, configs }: Fleet): RollOuts {
  const second = { as: "2", besideFirst: true, configs } as const;
  return {
    repository: makeSecondRepository(join(folder, "models-rolled-out"), models, second),
    addVersions: () => addSecondVersions(join(folder, "models"), models, second),
  };
}

function environment({ buckets, tenants }: ChaosSettings): Record<string, string> {
  return {
    ...(buckets === undefined ? {} : { BATON_BUCKETS: String(buckets) }),
    ...(tenants === undefined ? {} : { BATON_TENANT_HEADER: tenants.header }),
  };
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
