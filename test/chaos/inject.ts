/** Carries out a plan of faults on a running fleet, and counts what has really happened: a fault that missed is no dose. */
import type { Fleet } from "../setup/fleet.js";
import type { Fault } from "./plan.js";

export type FaultCounts = Record<Fault["kind"], number>;

/** An armed loss that meets no traffic for this long is given up. */
const LOSS_PATIENCE_MS = 3_000;

/** Resolves when the last fault is over and everything killed has been started again; rejects if something does not come back. */
export async function inject(fleet: Fleet, plan: readonly Fault[], note: (line: string) => void): Promise<FaultCounts> {
  const counts: FaultCounts = {
    workerKill: 0,
    workerFreeze: 0,
    gatewayKill: 0,
    redisKill: 0,
    natsKill: 0,
    redisReset: 0,
    redisStall: 0,
    lostReply: 0,
    natsReset: 0,
  };
  const begunAt = performance.now();
  /** The last fault on each target: two on one target follow each other. */
  const tails = new Map<string, Promise<void>>();
  for (const fault of plan) {
    await sleep(begunAt + fault.at - performance.now());
    const target = targetOf(fault);
    const before = tails.get(target) ?? Promise.resolve();
    const run = before.then(async () => {
      if (!(await strike(fleet, fault))) return;
      counts[fault.kind] += 1;
      note(`${((performance.now() - begunAt) / 1_000).toFixed(1)} s ${describe(fault)}`);
    });
    run.catch((error: unknown) => note(`${describe(fault)} failed: ${String(error)}`)); // reported again below
    tails.set(target, run);
  }
  await Promise.all(tails.values());
  return counts;
}

/** @returns whether anything was hit. */
async function strike(fleet: Fleet, fault: Fault): Promise<boolean> {
  switch (fault.kind) {
    case "workerKill": {
      const worker = at(fleet.workers, fault.worker);
      await worker.kill();
      worker.spawn();
      return true;
    }
    case "workerFreeze": {
      const worker = at(fleet.workers, fault.worker);
      worker.freeze();
      await sleep(fault.forMs);
      worker.thaw();
      return true;
    }
    case "gatewayKill": {
      const { member } = at(fleet.gateways, fault.gateway);
      await member.kill();
      await sleep(fault.forMs);
      await member.start();
      return true;
    }
    case "redisKill":
    case "natsKill": {
      const broker = fault.kind === "redisKill" ? fleet.redis : fleet.nats;
      await broker.kill();
      await sleep(fault.forMs);
      await broker.restart();
      return true;
    }
    case "redisReset":
      return fleet.lines[fault.line].resetAll() > 0;
    case "natsReset":
      return fleet.lines.nats.resetAll() > 0;
    case "redisStall":
      fleet.lines[fault.line].blackHole("toClient");
      await sleep(fault.forMs);
      fleet.lines[fault.line].heal();
      return true;
    case "lostReply":
      break;
  }
  return fleet.lines[fault.line].loseReply(fault.nth, AbortSignal.timeout(LOSS_PATIENCE_MS));
}

function targetOf(fault: Fault): string {
  switch (fault.kind) {
    case "workerKill":
    case "workerFreeze":
      return `worker ${fault.worker}`;
    case "gatewayKill":
      return `gateway ${fault.gateway}`;
    case "redisStall":
    case "lostReply":
      return `${fault.kind} ${fault.line}`;
    default:
      return fault.kind;
  }
}

function describe({ kind, at: _, ...rest }: Fault): string {
  return [kind, ...Object.entries(rest).map(([name, value]) => `${name}=${value}`)].join(" ");
}

function at<T>(items: readonly T[], i: number): T {
  const item = items[i];
  if (item === undefined) throw new Error(`the plan names number ${i} of ${items.length}`);
  return item;
}

async function sleep(ms: number): Promise<void> {
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
}
