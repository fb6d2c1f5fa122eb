/** How long clients wait after the death of one of several workers with steps. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { LoadJob, LoadResult } from "../load/measure.js";
import { runChild } from "../support/child.js";
import { startBenchFleet } from "../support/fleet.js";
import { tiny } from "../support/models.js";
import type { Timing } from "../steps/scenarios.js";
import { heldBy } from "./owners.js";
import { asking, pause, type RowResult } from "./window.js";

export interface DeadWorkerPlan {
  readonly folder: string;
  readonly repository: string;
  readonly expected: string;
  readonly timing: Timing;
}

export interface DeadWorkerResult extends RowResult {
  /** The longest time of a step, in ms, which is a step of the dead worker. */
  readonly longestMs: number;
}

const WORKERS = 4;
const SEQUENCES = 64;
const LEASE_MS = 1_000;
/**
 * How long after the start of the measurement the worker dies. The rest of the measurement is
 * longer than two leases.
 */
const KILLED_AFTER_MS = 500;
const LEAST_MEASURED_MS = 3_000;

export async function measureDeadWorker(plan: DeadWorkerPlan): Promise<DeadWorkerResult> {
  const { repository, expected, timing } = plan;
  const folder = mkdtempSync(join(plan.folder, "dead-worker-"));
  const env = { BATON_MODELS: tiny.name, BATON_LEASE_MS: String(LEASE_MS) };
  const fleet = await startBenchFleet({ folder, repository, models: [tiny.name], workers: WORKERS, env });
  try {
    const job: LoadJob = {
      port: fleet.port,
      model: tiny,
      sequences: SEQUENCES,
      expected,
      warmupMs: timing.warmupMs,
      measureMs: Math.max(timing.measureMs, LEAST_MEASURED_MS),
    };
    const killing: Promise<unknown>[] = [];
    let held = 0;
    const kill = async () => {
      await pause(KILLED_AFTER_MS);
      const [dying] = fleet.workers;
      const owners = await asking(fleet.redis, heldBy);
      for (const [owner, count] of owners) if (owner.startsWith(`${dying?.name}.`)) held += count;
      // The process and its supervisor die at once, as if they had lost their machine.
      await dying?.kill();
    };
    const load = new URL("../load/measure.js", import.meta.url);
    const result = await runChild<LoadJob, LoadResult>(load, job, () => void killing.push(kill()));
    await Promise.all(killing);
    const { latencyMs, longestMs, checked, wrong, steps } = result;
    return {
      longestMs,
      checked,
      wrong,
      detail:
        `one of ${WORKERS} workers killed, which held ${held} of ${SEQUENCES} steps, lease ${LEASE_MS} ms; ` +
        `${steps} steps, p50 ${latencyMs.p50.toFixed(1)} ms, p99 ${latencyMs.p99.toFixed(1)} ms`,
    };
  } finally {
    await fleet.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}
