/**
 * Carries out a plan of faults on a running fleet, and counts the faults that struck, since a fault
 * that missed proves nothing.
 */
import type { Pace } from "../support/sequences/pace.js";
import type { Fleet } from "../support/fleet/fleet.js";
import type { Broker } from "../support/brokers/broker.js";
import type { Proxy } from "../support/fleet/proxy.js";
import type { Store } from "../support/fleet/store.js";
import type { Fault } from "./plan.js";

export type FaultCounts = Record<Fault["kind"], number>;

export interface Injection {
  /** The load keeps to this pace. */
  readonly pace: Pace;
  /** Makes the repository with the second versions; a plan with a roll-out needs this. */
  readonly rollOut?: RollOuts;
  readonly note: (line: string) => void;
}

export interface RollOuts {
  /** The repository with which rolled workers start anew. */
  readonly repository: string;
  /** Adds the second versions to the repository that workers poll. */
  readonly addVersions: () => void;
}

/**
 * A worker that has to end hands back its requests. A worker that is still there after this long is
 * killed.
 */
const DRAIN_MS = 30_000;

/** A lost reply or a reset that finds no traffic for this long counts as a miss. */
const PATIENCE_MS = 3_000;

/**
 * Strikes at the planned times, or later: a killed worker is left alone until it works again, and
 * at least one worker is always at work. The load keeps to the pace of the faults. Resolves when
 * the last fault is over and every killed process is back.
 * @throws Error if a process does not come back
 */
export async function inject(
  fleet: Fleet,
  plan: readonly Fault[],
  { pace, rollOut, note }: Injection,
): Promise<FaultCounts> {
  const counts: FaultCounts = {
    workerKill: 0,
    workerFreeze: 0,
    workerRoll: 0,
    newVersion: 0,
    gatewayKill: 0,
    redisKill: 0,
    replicaKill: 0,
    natsKill: 0,
    redisReset: 0,
    redisStall: 0,
    lostReply: 0,
    natsReset: 0,
  };
  const begunAt = performance.now();
  /** The last fault on each target. Two faults on one target follow each other. */
  const tails = new Map<string, Promise<void>>();
  const outOfWork = new Seats(Math.max(1, fleet.workers.length - 1));
  let struck = 0;
  pace.hold();
  for (const fault of plan) {
    await sleep(begunAt + fault.at - performance.now());
    const target = targetOf(fault);
    const before = tails.get(target) ?? Promise.resolve();
    const run = before.then(async () => {
      const blow = () => strike(fleet, fault, rollOut);
      const hit = await ("worker" in fault ? outOfWork.hold(blow) : blow());
      struck += 1;
      pace.allow(struck / plan.length);
      if (!hit) return;
      counts[fault.kind] += 1;
      note(`${((performance.now() - begunAt) / 1_000).toFixed(1)} s ${describe(fault)}`);
    });
    // The await below rejects with this error, too.
    run.catch((error: unknown) => note(`${describe(fault)} failed: ${String(error)}`));
    tails.set(target, run);
  }
  await Promise.all(tails.values());
  pace.allow(1);
  return counts;
}

/** @returns whether the fault hit anything */
async function strike(fleet: Fleet, fault: Fault, rollOut: RollOuts | undefined): Promise<boolean> {
  switch (fault.kind) {
    case "workerKill": {
      const worker = at(fleet.workers, fault.worker);
      await worker.restart();
      return true;
    }
    case "workerFreeze": {
      const worker = at(fleet.workers, fault.worker);
      worker.freeze();
      await sleep(fault.forMs);
      worker.thaw();
      return true;
    }
    case "workerRoll": {
      const worker = at(fleet.workers, fault.worker);
      await worker.terminate(DRAIN_MS);
      worker.reconfigure({ BATON_MODEL_REPOSITORY: needed(rollOut).repository });
      await worker.start();
      return true;
    }
    case "newVersion":
      needed(rollOut).addVersions();
      return true;
    case "gatewayKill": {
      const { member } = at(fleet.gateways, fault.gateway);
      await member.kill();
      await sleep(fault.forMs);
      await member.start();
      return true;
    }
    case "redisKill": {
      const masters = await fleet.store.mastersNow();
      await cycle(at(masters, fault.master % masters.length), fault.forMs + fleet.store.failoverMs);
      // The next victim may be the only other server with the same keys.
      await fleet.store.whenWhole();
      return true;
    }
    case "replicaKill": {
      const replicas = await replicasOf(fleet.store);
      await cycle(at(replicas, fault.replica % replicas.length), fault.forMs);
      await fleet.store.whenWhole();
      return true;
    }
    case "natsKill":
      await cycle(fleet.nats, fault.forMs);
      return true;
    case "redisReset":
      return resetOpen(fleet.store.lines[fault.line]);
    case "natsReset":
      return resetOpen([fleet.lines.nats]);
    case "redisStall":
      for (const line of fleet.store.lines[fault.line]) line.blackHole("toClient");
      await sleep(fault.forMs);
      for (const line of fleet.store.lines[fault.line]) line.heal();
      return true;
    case "lostReply":
      break;
  }
  const lines = fleet.store.lines[fault.line];
  return at(lines, fault.nth % lines.length).loseReply(fault.nth, AbortSignal.timeout(PATIENCE_MS));
}

function needed(rollOut: RollOuts | undefined): RollOuts {
  if (rollOut === undefined) throw new Error("the plan has a roll-out, and there is nothing to roll out");
  return rollOut;
}

async function cycle(broker: Broker, downMs: number): Promise<void> {
  await broker.kill();
  await sleep(downMs);
  await broker.restart();
}

/** The servers that are not masters now. */
async function replicasOf(store: Store): Promise<readonly Broker[]> {
  const masters = new Set(await store.mastersNow());
  return store.servers.filter((server) => !masters.has(server));
}

/**
 * While the server is down there is no connection to cut. The reset then waits for the next
 * connection.
 */
async function resetOpen(lines: readonly Proxy[]): Promise<boolean> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  while (lines.reduce((count, line) => count + line.resetAll(), 0) === 0) {
    if (performance.now() > giveUpAt) return false;
    await sleep(20);
  }
  return true;
}

function targetOf(fault: Fault): string {
  switch (fault.kind) {
    case "workerKill":
    case "workerFreeze":
    case "workerRoll":
      return `worker ${fault.worker}`;
    case "gatewayKill":
      return `gateway ${fault.gateway}`;
    case "redisKill":
    case "replicaKill":
      return "redis";
    case "redisStall":
    case "lostReply":
      return `${fault.kind} ${fault.line}`;
    default:
      return fault.kind;
  }
}

function describe(fault: Fault): string {
  const details = Object.entries(fault).filter(([name]) => name !== "kind" && name !== "at");
  return [fault.kind, ...details.map(([name, value]) => `${name}=${value}`)].join(" ");
}

function at<T>(items: readonly T[], i: number): T {
  const item = items[i];
  if (item === undefined) throw new Error(`the plan names number ${i} of ${items.length}`);
  return item;
}

async function sleep(ms: number): Promise<void> {
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
}

/** A number of seats. Work that finds no free seat waits for its turn. */
class Seats {
  #free: number;
  readonly #queue: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async hold<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#queue.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#queue.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}
