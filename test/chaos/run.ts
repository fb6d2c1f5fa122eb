/**
 * One chaos run: a fleet, a load, a plan of faults at the same time, then quiet, and the checker's verdict. A run whose dose was not
 * reached, or whose load ended before its faults, proves nothing and fails too.
 */
import { check } from "../history/check.js";
import { runBystander } from "../history/bystander.js";
import { RecordingClient } from "../history/client.js";
import type { ResourceLimits } from "../history/facts.js";
import { settledFloor } from "../history/floor.js";
import { byRequest, History } from "../history/history.js";
import { runLoad } from "../history/load.js";
import { planSequences } from "../history/sequences.js";
import { watchFleet } from "../history/watch.js";
import { startFleet, type Fleet } from "../setup/fleet.js";
import { seededRandom, type Random } from "../setup/random.js";
import { inject, type FaultCounts } from "./inject.js";
import { planFaults, type Dose, type Fault } from "./plan.js";
import { summarize, type ChaosReport } from "./summary.js";

export interface ChaosSettings {
  readonly seed: number;
  readonly dose: Dose;
  readonly durationMs: number;
  readonly sequences: number;
  readonly steps: number;
  readonly workers: number;
  readonly gateways: number;
  readonly leaseMs: number;
  /** Logs, plan, history and report are left here. */
  readonly folder?: string;
  readonly note: (line: string) => void;
}

export const limits: ResourceLimits = {
  rssBytes: 512 * 1_048_576,
  descriptors: 512,
  usedMemoryBytes: 256 * 1_048_576,
};

const CLIENTS = 8;
const QUIET_MS = 15_000;

export async function runChaos(settings: ChaosSettings): Promise<ChaosReport> {
  const { workers, gateways, leaseMs, folder, note } = settings;
  const random = seededRandom(settings.seed);
  const plan = planFaults(settings.dose, settings, random.fork("faults"));
  note(`seed ${settings.seed}: ${plan.length} faults over ${settings.durationMs / 1_000} s`);
  const models = ["chain", "pill", "simple"];
  const fleet = await startFleet({ gateways, workers, models, leaseMs, ...(folder === undefined ? {} : { folder }) });
  try {
    await fleet.whenServing();
    note("fleet serves");
    return await runOn(fleet, settings, plan, random);
  } finally {
    await fleet.dispose();
  }
}

async function runOn(
  fleet: Fleet,
  settings: ChaosSettings,
  plan: readonly Fault[],
  random: Random,
): Promise<ChaosReport> {
  const { dose, durationMs, note } = settings;
  const history = new History();
  const watch = watchFleet(fleet, history);
  const clientNamed = (name: string) =>
    new RecordingClient({ name, history, urls: fleet.urls, random: random.fork(name) });
  const clients = Array.from({ length: CLIENTS }, (_, i) => clientNamed(`client-${i}`));
  const bystander = clientNamed("bystander");
  const sequences = planSequences({
    count: settings.sequences,
    steps: settings.steps,
    models: ["chain", "pill"],
    poison: dose.poison,
    bursts: 0.1,
    random: random.fork("sequences"),
  });

  const calm = inject(fleet, plan, note);
  const rest = { random: random.fork("load"), rereads: 0.05, twins: 0.03 };
  const load = runLoad({ sequences, clients, spreadMs: durationMs, calm, ...rest });
  const [faults] = await Promise.all([calm, load, runBystander(bystander, 50, load)]);
  note("load has ended");

  const redis = fleet.redis.connect();
  const floor = await settledFloor(redis, QUIET_MS);
  redis.disconnect();
  await watch.stop();
  for (const client of [...clients, bystander]) client.close();

  const { commits, resources } = watch;
  const violations = check({ events: history.events, floor, commits, resources, limits });
  const shortfalls = shortOf(dose, faults);
  if (commits.length === 0) shortfalls.push("no commit was sampled");
  const numbers = summarize({ fleet, requests: byRequest(history.events), events: history.events, resources, commits });
  return { seed: settings.seed, faults, violations, shortfalls, numbers, plan, history };
}

/** The share of planned faults that must have struck: chance may let an armed one pass. */
const REACHED = 0.66;

function shortOf(dose: Dose, done: FaultCounts): string[] {
  const pairs: [keyof Dose, Fault["kind"]][] = [
    ["workerKills", "workerKill"],
    ["workerFreezes", "workerFreeze"],
    ["gatewayKills", "gatewayKill"],
    ["redisKills", "redisKill"],
    ["redisResets", "redisReset"],
    ["redisStalls", "redisStall"],
    ["lostReplies", "lostReply"],
    ["natsKills", "natsKill"],
    ["natsResets", "natsReset"],
  ];
  return pairs.flatMap(([planned, kind]) => {
    const needed = planned === "lostReplies" ? Math.floor(dose[planned] * REACHED) : dose[planned];
    return done[kind] >= needed ? [] : [`${kind}: ${done[kind]} of ${needed}`];
  });
}
