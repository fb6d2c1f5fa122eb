/**
 * An experiment: a fleet, a load, faults during the load, then quiet, and the verdict of the
 * checker. The last step of every sequence waits until the faults are over, so it reads the state
 * that the faults have left.
 */
import { setMaxListeners } from "node:events";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { startFleet, type Fleet, type FleetPlan } from "../fleet/fleet.js";
import { seededRandom } from "../fleet/random.js";
import { ownConfig } from "../fleet/repository.js";
import { addressesOf, type DoorName } from "../doors/doors.js";
import { runLoad } from "./load.js";
import { balance } from "./balancer.js";
import { bystanders, runBystander, type BystanderName } from "./bystanders.js";
import { check } from "./invariants.js";
import { RecordingClient } from "./client.js";
import type { ResourceLimits } from "./facts.js";
import { settledFloor } from "./floor.js";
import { byRequest, History, type RequestHistory } from "./history.js";
import { summarize, type Numbers } from "./numbers.js";
import { Pace } from "./pace.js";
import { planSequences, type SequencesPlan } from "./sequences.js";
import type { Violation } from "./violation.js";
import { watchFleet } from "./watch.js";

export interface Experiment<Broke> {
  /**
   * Clients heed readiness, as behind a load balancer. Else clients try any gateway, dead or alive.
   */
  readonly balanced?: boolean;
  readonly seed: number;
  readonly fleet: FleetPlan;
  readonly sequences: number;
  readonly steps: number;
  /**
   * Models whose bare loops `references.ts` has. The fleet must serve these models, and those of
   * the bystanders.
   */
  readonly models: readonly string[];
  /**
   * The doors that the clients of sequences take in turn; HTTP alone if absent. The doors of gRPC
   * need a fleet that speaks gRPC, and an experiment that is not balanced.
   */
  readonly doors?: readonly DoorName[];
  /** The bystanders of each tenant; `simple` alone if absent. */
  readonly beside?: readonly BystanderName[];
  /** The share of occasions at which a client of gRPC leaves in the middle of an attempt. */
  readonly leaves?: number;
  /** As in the plan of sequences. */
  readonly numbered?: SequencesPlan["numbered"];
  readonly levels?: SequencesPlan["levels"];
  readonly poison?: number;
  readonly bursts?: number;
  readonly clients?: number;
  /**
   * The tenants of the requests. Each tenant has its own bystander, and sequences under the same
   * ids as the other tenants. If absent, all requests are the default tenant's.
   */
  readonly tenants?: readonly string[];
  /** The header in which clients name their tenant. The gateways must heed this header. */
  readonly tenantHeader?: string;
  /** How long the load lasts at least. */
  readonly spreadMs: number;
  /** Causes the faults. Adds its own requests to the fleet to `history.elsewhere`. */
  readonly breaking: (fleet: Fleet, pace: Pace, history: History) => Promise<Broke>;
}

export interface Findings<Broke> {
  readonly broke: Broke;
  readonly violations: readonly Violation[];
  /** Reasons why the experiment proves less than it should. */
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
  /** nats-server's own limit for a slow client is twice as much. */
  natsPendingBytes: 32 * 1_048_576,
};

/** The line about idle sequences in a model's configuration. */
const IDLE = /max_sequence_idle_microseconds: \d+/;
/** A sequence of an experiment expires after this many microseconds without a step. */
const IDLE_US = 1_800_000_000;
const QUIET_MS = 15_000;

export async function experiment<Broke>(plan: Experiment<Broke>): Promise<Findings<Broke>> {
  const fleet = await startFleet({ ...plan.fleet, configs: longLived(plan.fleet) });
  try {
    await fleet.whenServing();
    return await runOn(fleet, plan);
  } finally {
    await fleet.dispose();
  }
}

/**
 * Configurations with a long idle time, for the models whose idle sequences expire. The last step
 * waits until the faults are over, which takes longer on a slow machine than the models' usual
 * minute.
 */
function longLived({ models, configs = {} }: FleetPlan): Record<string, string> {
  const found: Record<string, string> = { ...configs };
  for (const model of models) {
    const config = configs[model] ?? ownConfig(model);
    if (config === undefined || !IDLE.test(config)) continue;
    found[model] = config.replace(IDLE, `max_sequence_idle_microseconds: ${IDLE_US}`);
  }
  return found;
}

async function runOn<Broke>(fleet: Fleet, plan: Experiment<Broke>): Promise<Findings<Broke>> {
  const random = seededRandom(plan.seed);
  const history = new History();
  const watch = watchFleet(fleet, history);
  const balancer = plan.balanced === true ? balance(fleet.urls) : undefined;
  const { tenants = [DEFAULT_TENANT], tenantHeader, leaves = 0 } = plan;
  const { doors = ["http"], beside: named = ["simple"], numbered, levels } = plan;
  const clientNamed = (name: string, door: DoorName) =>
    new RecordingClient({
      name,
      history,
      door,
      leaves,
      urls: () => (door === "http" ? balancer?.urls() : undefined) ?? addressesOf(fleet.gateways, door),
      random: random.fork(name),
      ...(tenantHeader === undefined ? {} : { tenantHeader }),
    });
  const clients = Array.from({ length: plan.clients ?? 8 }, (_, i) => {
    const door = doors[i % doors.length] ?? "http";
    return clientNamed(`${door} ${i}`, door);
  });
  const others = tenants.flatMap((tenant) =>
    named.map((name) => ({
      client: clientNamed(`${name} ${tenant}`, bystanders[name].door),
      name,
      tenant,
      levels: levels ?? {},
    })),
  );
  const sequences = planSequences({
    count: plan.sequences,
    steps: plan.steps,
    models: plan.models,
    poison: plan.poison ?? 0,
    bursts: plan.bursts ?? 0.1,
    ...(numbered === undefined ? {} : { numbered }),
    ...(levels === undefined ? {} : { levels }),
    tenants,
    random: random.fork("sequences"),
  });

  const over = new AbortController();
  // Each lane of a bystander listens.
  setMaxListeners(0, over.signal);
  const pace = new Pace(plan.spreadMs);
  const calm = plan.breaking(fleet, pace, history);
  const rest = { random: random.fork("load"), rereads: 0.05, twins: 0.03 };
  const load = runLoad({ sequences, clients, pace, calm, ...rest }).finally(() => over.abort());
  const beside = others.map((bystander) => runBystander(bystander, over.signal));
  const [broke] = await Promise.all([calm, load, ...beside]);

  await fleet.store.whenWhole();
  const connections = (await fleet.store.mastersNow()).map((server) => server.connect());
  const floor = await settledFloor(connections, QUIET_MS);
  for (const redis of connections) redis.disconnect();
  await watch.stop();
  balancer?.stop();
  for (const client of [...clients, ...others.map(({ client }) => client)]) client.close();

  const { commits, resources } = watch;
  const { events, elsewhere } = history;
  const requests = byRequest(events);
  return {
    broke,
    violations: check({ events, elsewhere, floor, commits, resources, limits }),
    shortfalls: [...endedUnasked(fleet), ...(commits.length === 0 ? ["no commit was sampled"] : [])],
    numbers: summarize({ fleet, requests, events, resources, commits }),
    history,
    requests,
  };
}

/**
 * A supervisor or a gateway that ends by itself is a fault of Baton, even if everything recovers.
 */
function endedUnasked(fleet: Fleet): string[] {
  const members = [...fleet.workers, ...fleet.gateways.map(({ member }) => member)];
  return members.flatMap(({ name, unasked }) =>
    unasked.map(({ code, signal }) => `${name} ended unasked (${code ?? signal})`),
  );
}
