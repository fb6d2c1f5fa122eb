/**
 * A step's cost for Redis in a large fleet beside a small fleet. Both fleets get the same low rate
 * of steps, which a machine with two cores can carry. Idle workers' cost has its own limit, so this
 * row measures the idle fleet before the load, and subtracts its cost.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { startBenchFleet } from "../support/fleet.js";
import { cpuPercent, describeCalls, readCounters, spentBetween } from "./counters.js";
import type { StepsPlan } from "./steps.js";
import type { SumsResult } from "./sums.js";
import { asking, pause, within, type RowResult } from "./window.js";

export interface ManyWorkersPlan extends Pick<StepsPlan, "folder" | "repository" | "model"> {
  /** How many workers the small fleet has, and the large fleet. */
  readonly few: number;
  readonly many: number;
  /** How long to measure the idle fleet, and then the load, in ms. */
  readonly windowMs: number;
  /** Sends steps to the gateway at this port at a fixed rate, and checks every answer. */
  readonly load: (port: number, ms: number) => Promise<SumsResult>;
}

export interface ManyWorkersCost extends RowResult {
  /** Microseconds of Redis' CPU per step, without the cost of the idle fleet. */
  readonly fewUs: number;
  readonly manyUs: number;
  /** The second in percent of the first. */
  readonly percent: number;
  /** The same with the cost of the idle fleet. */
  readonly fewWholeUs: number;
  readonly manyWholeUs: number;
  /** Percent of a core that the idle fleet costs Redis. */
  readonly fewIdle: number;
  readonly manyIdle: number;
}

/** After this time, the effects of many workers' start are over. */
const SETTLED_MS = 5_000;
/**
 * The pause before the reading of Redis' CPU, in which workers and gateways still remove delivered
 * outcomes.
 */
const REMOVED_MS = 500;

export async function measureManyWorkers(plan: ManyWorkersPlan): Promise<ManyWorkersCost> {
  const few = await measureFleet(plan, plan.few);
  const many = await measureFleet(plan, plan.many);
  return {
    fewUs: few.us,
    manyUs: many.us,
    percent: (100 * many.us) / few.us,
    fewWholeUs: few.wholeUs,
    manyWholeUs: many.wholeUs,
    fewIdle: few.idle,
    manyIdle: many.idle,
    checked: few.checked + many.checked,
    wrong: few.wrong + many.wrong,
    detail: `${few.detail}; ${many.detail}`,
  };
}

async function measureFleet({ folder: place, repository, model, load, windowMs }: ManyWorkersPlan, workers: number) {
  const folder = mkdtempSync(join(place, `workers-${workers}-`));
  const env = { BATON_MODELS: model, BATON_LOG_LEVEL: "debug" };
  const fleet = await startBenchFleet({ folder, repository, models: [model], workers, env });
  try {
    return await asking(fleet.redis, async (redis) => {
      // The first steps of a fleet load and compile code that later steps reuse.
      await load(fleet.port, SETTLED_MS / 2);
      await pause(SETTLED_MS);
      const idle = await within(redis, windowMs);
      const from = await readCounters(redis);
      const startedAt = Date.now();
      const { checked, wrong, missed } = await load(fleet.port, windowMs);
      const batches = fleet.batches(startedAt, Date.now());
      await pause(REMOVED_MS);
      const spent = spentBetween(from, await readCounters(redis));
      const wholeUs = (1_000 * spent.cpuMs) / checked;
      const us = wholeUs - (1_000 * (idle.cpuMs / idle.seconds) * spent.seconds) / checked;
      const idleShare = cpuPercent(idle);
      const beyond = new Map(
        [...spent.calls].map(([command, count]) => [
          command,
          Math.max(0, count - ((idle.calls.get(command) ?? 0) * spent.seconds) / idle.seconds),
        ]),
      );
      const detail =
        `${workers} workers: ${us.toFixed(1)} µs beyond the idle fleet, ${wholeUs.toFixed(1)} µs with it, idle ` +
        `${idleShare.toFixed(2)} % of a core; ${checked} steps in ${spent.seconds.toFixed(1)} s (${missed} not sent), ` +
        `mean batch ${(checked / batches.length).toFixed(2)}; calls per step beyond the idle fleet's: ` +
        `${describeCalls(beyond, checked)}; idle calls per second: ${describeCalls(idle.calls, idle.seconds)}`;
      return { us, wholeUs, idle: idleShare, checked, wrong, detail };
    });
  } finally {
    await fleet.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}
