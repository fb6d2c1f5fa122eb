/** The calls of a worker to Redis while no request arrives: 10 models, each with 16 lanes. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { startFleet } from "../../support/fleet/fleet.js";
import { allCalls, cpuPercent, describeCalls, readCounters } from "./counters.js";
import { deploymentOf } from "./edition.js";
import { copiesOfAccumulate } from "./models.js";
import { asking, pause, within, type RowResult } from "./window.js";

export interface IdleWorkerPlan {
  readonly folder: string;
  readonly measureMs: number;
}

export interface IdleWorkerCost extends RowResult {
  readonly callsPerSecond: number;
  readonly connections: number;
  /** Percent of a core. */
  readonly redisPercent: number;
}

const MODELS = 10;
const BUCKETS = "16";
/** After this time, the effects of a start are over. */
const SETTLED_MS = 1_000;

export async function measureIdleWorker(plan: IdleWorkerPlan): Promise<IdleWorkerCost> {
  const folder = mkdtempSync(join(plan.folder, "idle-worker-"));
  const names = Array.from({ length: MODELS }, (_, i) => `sum-${i}`);
  const repository = copiesOfAccumulate(
    join(folder, "models"),
    names.map((name) => ({ name })),
  );
  const fleet = await startFleet({
    gateways: 0,
    models: names,
    repository,
    direct: true,
    env: { BATON_BUCKETS: BUCKETS },
    folder,
  });
  try {
    return await asking(fleet.redis, async (redis) => {
      await pause(SETTLED_MS);
      const spent = await within(redis, plan.measureMs);
      const { clients } = await readCounters(redis);
      return {
        callsPerSecond: allCalls(spent.calls) / spent.seconds,
        connections: clients - 1,
        redisPercent: cpuPercent(spent),
        checked: 0,
        wrong: 0,
        detail:
          `${MODELS} models, in force: ${await deploymentOf(redis)}; ` +
          `calls per second: ${describeCalls(spent.calls, spent.seconds)}`,
      };
    });
  } finally {
    await fleet.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}
