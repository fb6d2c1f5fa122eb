/**
 * Steps that workers hold and do not run, and requests that stay open at a gateway meanwhile. The
 * model of these steps waits ten minutes for a full batch, so nothing runs.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { startFleet, type Fleet } from "../../support/fleet/fleet.js";
import { until } from "../../support/until.js";
import { Connection, type Answer } from "../load/connection.js";
import { allCalls, cpuPercent, describeCalls } from "./counters.js";
import { heldBy } from "./owners.js";
import { copiesOfAccumulate, addingStep, type Copy } from "./models.js";
import { clientNames, openMonitor } from "./monitor.js";
import { asking, pause, within, type RowResult } from "./window.js";

export interface HeldPlan {
  readonly folder: string;
  readonly measureMs: number;
}

export interface HoldingCost extends RowResult {
  /** Percent of a core. */
  readonly redisPercent: number;
  readonly callsPerSecond: number;
}

export interface OpenRequestsCost extends RowResult {
  /** Calls of the gateway alone. */
  readonly callsPerSecond: number;
}

const WORKERS = 16;
const EACH = 128;
const OPEN_REQUESTS = 2_000;
/** No batch ever fills up, even if the workers take unequal shares. */
const FULL = 4_096;
const WAITING: Copy = { name: "waits", delayMs: 600_000, batch: FULL };
/** How many requests go out together: few, so that all workers get some. */
const SENT_TOGETHER = 32;
/** After this time, the effects of the steps' arrival are over. */
const SETTLED_MS = 1_500;

/** 16 workers hold 2 048 steps together. Their gateway is dead, so only the workers ask Redis. */
export function measureHolding({ folder, measureMs }: HeldPlan): Promise<HoldingCost> {
  return holding({ folder, workers: WORKERS, steps: WORKERS * EACH }, async (fleet, redis) => {
    await fleet.gateways[0]?.member.kill();
    await pause(SETTLED_MS);
    const spent = await within(redis, measureMs);
    const held = [...(await heldBy(redis)).values()];
    return {
      redisPercent: cpuPercent(spent),
      callsPerSecond: allCalls(spent.calls) / spent.seconds,
      checked: 0,
      wrong: 0,
      detail:
        `${held.length} workers hold ${Math.min(...held)} to ${Math.max(...held)} steps each, ` +
        `${total(held)} in all; calls per second: ${describeCalls(spent.calls, spent.seconds)}`,
    };
  });
}

/** One gateway waits for 2 000 outcomes, and one worker holds all the steps. */
export function measureOpenRequests({ folder, measureMs }: HeldPlan): Promise<OpenRequestsCost> {
  return holding({ folder, workers: 1, steps: OPEN_REQUESTS }, async (fleet, redis) => {
    await pause(SETTLED_MS);
    const names = clientNames(String(await redis.client("LIST")));
    const startedAt = performance.now();
    const monitor = await openMonitor({ port: fleet.redis.port, redis });
    await pause(measureMs);
    const { calls } = await monitor.stop();
    const seconds = (performance.now() - startedAt) / 1_000;
    const [workers] = fleet.workers;
    const ofGateway = new Map<string, number>();
    for (const [address, counted] of calls) {
      const name = names.get(address) ?? "";
      // The connections of this program have no name.
      if (name === "" || (workers !== undefined && name.startsWith(workers.name))) continue;
      for (const [command, count] of counted) ofGateway.set(command, (ofGateway.get(command) ?? 0) + count);
    }
    return {
      callsPerSecond: allCalls(ofGateway) / seconds,
      checked: 0,
      wrong: 0,
      detail: `${OPEN_REQUESTS} requests open; calls per second: ${describeCalls(ofGateway, seconds)}`,
    };
  });
}

interface Holding {
  readonly folder: string;
  readonly workers: number;
  readonly steps: number;
}

/** Measures as soon as workers hold all steps. The clients wait until the measurement is over. */
async function holding<T>(plan: Holding, measure: (fleet: Fleet, redis: Redis) => Promise<T>): Promise<T> {
  const { workers, steps } = plan;
  const folder = mkdtempSync(join(plan.folder, "held-"));
  const repository = copiesOfAccumulate(join(folder, "models"), [WAITING]);
  const fleet = await startFleet({ workers, models: [WAITING.name], repository, direct: true, folder });
  const connections: Connection[] = [];
  let fault: string | undefined;
  const answered = ({ status, body }: Answer) => void (fault ??= `${status}: ${body.toString("utf8")}`);
  const failed = (error: Error) => void (fault ??= error.message);
  try {
    await fleet.whenServing();
    return await asking(fleet.redis, async (redis) => {
      const port = Number(new URL(fleet.urls[0] ?? "").port);
      for (let i = 0; i < steps; i += SENT_TOGETHER) {
        const opening = Array.from({ length: Math.min(SENT_TOGETHER, steps - i) }, () =>
          Connection.open(port, answered, failed),
        );
        for (const [j, connection] of (await Promise.all(opening)).entries()) {
          connections.push(connection);
          connection.send(addingStep(WAITING.name, i + j + 1, true));
        }
      }
      await until(async () => {
        if (fault !== undefined) throw new Error(`a step that should be held was not: ${fault}`);
        return total((await heldBy(redis)).values()) === steps;
      });
      return await measure(fleet, redis);
    });
  } finally {
    for (const connection of connections) connection.close();
    await fleet.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}

function total(counts: Iterable<number>): number {
  let sum = 0;
  for (const count of counts) sum += count;
  return sum;
}
