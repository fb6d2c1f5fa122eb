/**
 * What a step costs Redis in a large fleet beside a small one, under the same load. What workers
 * cost that do nothing has a law of its own, so it is measured before the load, and taken off.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { startBenchFleet } from "../support/fleet.js";
import { cpuPercent, describeCalls, readCounters, spentBetween } from "./counters.js";
import type { StepsPlan } from "./steps.js";
import { asking, pause, within, type RowResult } from "./window.js";

export interface ManyWorkersPlan extends Pick<StepsPlan, "folder" | "repository" | "model" | "load" | "measureMs"> {
  /** How many workers the small fleet has, and the large one. */
  readonly few: number;
  readonly many: number;
}

export interface ManyWorkersCost extends RowResult {
  /** Microseconds of Redis' CPU per step, beyond what the idle fleet costs; NaN: too few steps. */
  readonly fewUs: number;
  readonly manyUs: number;
  /** The second in percent of the first. */
  readonly percent: number;
}

/** Until then what the start of many workers causes is over. */
const SETTLED_MS = 3_000;

export async function measureManyWorkers(plan: ManyWorkersPlan): Promise<ManyWorkersCost> {
  const few = await measureFleet(plan, plan.few);
  const many = await measureFleet(plan, plan.many);
  return {
    fewUs: few.us,
    manyUs: many.us,
    percent: (100 * many.us) / few.us,
    checked: few.checked + many.checked,
    wrong: few.wrong + many.wrong,
    detail: `${few.detail}; ${many.detail}`,
  };
}

async function measureFleet({ folder: place, repository, model, load, measureMs }: ManyWorkersPlan, workers: number) {
  const folder = mkdtempSync(join(place, `workers-${workers}-`));
  const env = { BATON_MODELS: model, BATON_LOG_LEVEL: "debug" };
  const fleet = await startBenchFleet({ folder, repository, models: [model], workers, env });
  try {
    return await asking(fleet.redis, async (redis) => {
      await pause(SETTLED_MS);
      const idle = await within(redis, measureMs);
      const from = await readCounters(redis);
      const startedAt = Date.now();
      const { checked, wrong } = await load(fleet.port, measureMs);
      const spent = spentBetween(from, await readCounters(redis));
      const meanBatch = checked / fleet.batches(startedAt, Date.now()).length;
      const idleMs = (idle.cpuMs / idle.seconds) * spent.seconds;
      // A machine that does not carry the fleet runs so few steps that idling is most of what Redis
      // does, and the difference says nothing.
      const us = idleMs > spent.cpuMs / 2 ? Number.NaN : (1_000 * (spent.cpuMs - idleMs)) / checked;
      const detail =
        `${workers} workers: ${us.toFixed(1)} µs, and idle ${cpuPercent(idle).toFixed(1)} % of a core; ` +
        `${checked} steps in ${spent.seconds.toFixed(1)} s, mean batch ${meanBatch.toFixed(1)}; ` +
        `calls per step: ${describeCalls(spent.calls, checked)}`;
      return { us, checked, wrong, detail };
    });
  } finally {
    await fleet.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}
