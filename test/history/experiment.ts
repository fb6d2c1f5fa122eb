/**
 * One experiment: a fleet, a load, something that breaks it meanwhile, then quiet, and the checker's verdict. The last step of every
 * sequence waits until the breaking is over, so that it reads the state that the faults have left.
 */
import { startFleet, type Fleet, type FleetPlan } from "../setup/fleet.js";
import { seededRandom } from "../setup/random.js";
import { runBystander } from "./bystander.js";
import { balance } from "./balancer.js";
import { check } from "./check.js";
import { RecordingClient } from "./client.js";
import type { ResourceLimits } from "./facts.js";
import { settledFloor } from "./floor.js";
import { byRequest, History, type RequestHistory } from "./history.js";
import type { Violation } from "./invariants.js";
import { runLoad } from "./load.js";
import { summarize, type Numbers } from "./numbers.js";
import { Pace } from "./pace.js";
import { planSequences } from "./sequences.js";
import { watchFleet } from "./watch.js";

export interface Experiment<Broke> {
  /** Clients heed readiness, as behind a load balancer; else they try any gateway, dead or alive. */
  readonly balanced?: boolean;
  readonly seed: number;
  readonly fleet: FleetPlan;
  readonly sequences: number;
  readonly steps: number;
  /** Of the chain family; the fleet must serve them, and `simple` for the bystander. */
  readonly models: readonly string[];
  readonly poison?: number;
  readonly bursts?: number;
  readonly clients?: number;
  /** How long the load lasts at least. */
  readonly spreadMs: number;
  readonly breaking: (fleet: Fleet, pace: Pace) => Promise<Broke>;
}

export interface Findings<Broke> {
  readonly broke: Broke;
  readonly violations: readonly Violation[];
  /** Why the experiment proves less than it should. */
  readonly shortfalls: readonly string[];
  readonly numbers: Numbers;
  readonly history: History;
  readonly requests: ReadonlyMap<string, RequestHistory>;
}

export const limits: ResourceLimits = {
  rssBytes: 512 * 1_048_576,
  /** A connection for each of 500 sequences, and some for the fleet itself. */
  descriptors: 1_024,
  usedMemoryBytes: 256 * 1_048_576,
};

const QUIET_MS = 15_000;
const BYSTANDER_EVERY_MS = 50;

export async function experiment<Broke>(plan: Experiment<Broke>): Promise<Findings<Broke>> {
  const fleet = await startFleet(plan.fleet);
  try {
    await fleet.whenServing();
    return await runOn(fleet, plan);
  } finally {
    await fleet.dispose();
  }
}

async function runOn<Broke>(fleet: Fleet, plan: Experiment<Broke>): Promise<Findings<Broke>> {
  const random = seededRandom(plan.seed);
  const history = new History();
  const watch = watchFleet(fleet, history);
  const balancer = plan.balanced === true ? balance(fleet.urls) : undefined;
  const urls = balancer?.urls ?? (() => fleet.urls);
  const clientNamed = (name: string) => new RecordingClient({ name, history, urls, random: random.fork(name) });
  const clients = Array.from({ length: plan.clients ?? 8 }, (_, i) => clientNamed(`client-${i}`));
  const bystander = clientNamed("bystander");
  const sequences = planSequences({
    count: plan.sequences,
    steps: plan.steps,
    models: plan.models,
    poison: plan.poison ?? 0,
    bursts: plan.bursts ?? 0.1,
    random: random.fork("sequences"),
  });

  const over = new AbortController();
  const pace = new Pace(plan.spreadMs);
  const calm = plan.breaking(fleet, pace);
  const rest = { random: random.fork("load"), rereads: 0.05, twins: 0.03 };
  const load = runLoad({ sequences, clients, pace, calm, ...rest }).finally(() => over.abort());
  const [broke] = await Promise.all([calm, load, runBystander(bystander, BYSTANDER_EVERY_MS, over.signal)]);

  const redis = fleet.redis.connect();
  const floor = await settledFloor(redis, QUIET_MS);
  redis.disconnect();
  await watch.stop();
  balancer?.stop();
  for (const client of [...clients, bystander]) client.close();

  const { commits, resources } = watch;
  const { events } = history;
  const requests = byRequest(events);
  return {
    broke,
    violations: check({ events, floor, commits, resources, limits }),
    shortfalls: [...endedUnasked(fleet), ...(commits.length === 0 ? ["no commit was sampled"] : [])],
    numbers: summarize({ fleet, requests, events, resources, commits }),
    history,
    requests,
  };
}

/** A supervisor or a gateway that ends by itself is a fault of ours, even if everything recovers from it. */
function endedUnasked(fleet: Fleet): string[] {
  const members = [...fleet.workers, ...fleet.gateways.map(({ member }) => member)];
  return members.flatMap(({ name, unasked }) =>
    unasked.map(({ code, signal }) => `${name} ended unasked (${code ?? signal})`),
  );
}
