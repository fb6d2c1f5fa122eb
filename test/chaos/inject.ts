/** Carries out a plan of faults on a running fleet, and counts what has really happened: a fault that missed is no dose. */
import type { Pace } from "../history/pace.js";
import type { Fleet } from "../setup/fleet.js";
import type { Proxy } from "../setup/proxy.js";
import { Seats } from "../setup/seats.js";
import type { Fault } from "./plan.js";

export type FaultCounts = Record<Fault["kind"], number>;

/** A loss or a reset that finds no traffic for this long is given up. */
const PATIENCE_MS = 3_000;

/**
 * Strikes at the planned times, or later: a worker that was killed is left alone until it is at work again, and one worker always is. The
 * load keeps step. Resolves when the last fault is over and everything killed is back; rejects if something does not come back.
 */
export async function inject(
  fleet: Fleet,
  plan: readonly Fault[],
  pace: Pace,
  note: (line: string) => void,
): Promise<FaultCounts> {
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
  const outOfWork = new Seats(Math.max(1, fleet.workers.length - 1));
  let struck = 0;
  pace.hold();
  for (const fault of plan) {
    await sleep(begunAt + fault.at - performance.now());
    const target = targetOf(fault);
    const before = tails.get(target) ?? Promise.resolve();
    const run = before.then(async () => {
      const isWorkers = fault.kind === "workerKill" || fault.kind === "workerFreeze";
      const hit = await (isWorkers ? outOfWork.hold(() => strike(fleet, fault)) : strike(fleet, fault));
      struck += 1;
      pace.allow(struck / plan.length);
      if (!hit) return;
      counts[fault.kind] += 1;
      note(`${((performance.now() - begunAt) / 1_000).toFixed(1)} s ${describe(fault)}`);
    });
    run.catch((error: unknown) => note(`${describe(fault)} failed: ${String(error)}`)); // reported again below
    tails.set(target, run);
  }
  await Promise.all(tails.values());
  pace.allow(1);
  return counts;
}

/** @returns whether anything was hit. */
async function strike(fleet: Fleet, fault: Fault): Promise<boolean> {
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
      return resetOpen(fleet.lines[fault.line]);
    case "natsReset":
      return resetOpen(fleet.lines.nats);
    case "redisStall":
      fleet.lines[fault.line].blackHole("toClient");
      await sleep(fault.forMs);
      fleet.lines[fault.line].heal();
      return true;
    case "lostReply":
      break;
  }
  return fleet.lines[fault.line].loseReply(fault.nth, AbortSignal.timeout(PATIENCE_MS));
}

/** While the server is down there is nothing to cut: the reset then strikes as soon as there is. */
async function resetOpen(line: Proxy): Promise<boolean> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  while (line.resetAll() === 0) {
    if (performance.now() > giveUpAt) return false;
    await sleep(20);
  }
  return true;
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
