/** The cost of a sequence's step for Redis, while many sequences run in a closed loop over HTTP. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { startBenchFleet, type BenchFleet } from "../support/fleet.js";
import { keyedSettings, makeLimitedKey } from "./limited-key.js";
import { describeCalls, innerCalls, readCounters, spentBetween } from "./counters.js";
import { openMonitor } from "./monitor.js";
import { asking, pause, type RowResult } from "./window.js";

export interface StepsPlan {
  /** Folder for the row's fleet. */
  readonly folder: string;
  readonly repository: string;
  /** Name of the model. */
  readonly model: string;
  /** Bytes of a step's tensors, states included. Each tensor travels to Redis once. */
  readonly payload: number;
  /** Loads the gateway at this port for a while, and checks every answer. */
  readonly load: (port: number, ms: number, key?: string) => Promise<Pick<RowResult, "checked" | "wrong">>;
  readonly measureMs: number;
  /** Whether to count the bytes that scripts get, which takes a second run. */
  readonly monitored?: boolean;
  /** Whether the load comes with an API key that has every limit. */
  readonly isLimited?: boolean;
}

export interface StepCost extends RowResult {
  /** Commands per step, without the calls of scripts. */
  readonly inner: number;
  /** Bytes of keys and arguments of scripts per step, beyond the tensors; NaN unless monitored. */
  readonly scriptBytes: number;
  /** Bytes that Redis reads per step, beyond the tensors. */
  readonly inputBytes: number;
  /** Bytes that Redis appends to its file per step. */
  readonly fileBytes: number;
  /** Microseconds of Redis' CPU per step. */
  readonly redisUs: number;
  readonly meanBatch: number;
}

/** After this time, Redis has removed outcomes that clients got. That is part of a step's cost. */
const SETTLED_MS = 300;
const MONITORED_MS = 800;

export async function measureStepCost(plan: StepsPlan): Promise<StepCost> {
  const { repository, model, payload, measureMs, monitored = false, isLimited = false } = plan;
  const folder = mkdtempSync(join(plan.folder, "steps-"));
  const env = { BATON_MODELS: model, BATON_LOG_LEVEL: "debug" };
  const common = isLimited ? keyedSettings(folder) : {};
  const fleet = await startBenchFleet({ folder, repository, models: [model], workers: 1, env, common });
  try {
    return await asking(fleet.redis, async (redis) => {
      const key = isLimited ? await makeLimitedKey(fleet.redis.url) : undefined;
      const load = (port: number, ms: number) => plan.load(port, ms, key);
      const from = await readCounters(redis);
      const startedAt = Date.now();
      const { checked, wrong } = await load(fleet.port, measureMs);
      const batches = fleet.batches(startedAt, Date.now());
      await pause(SETTLED_MS);
      const spent = spentBetween(from, await readCounters(redis));
      const script = monitored ? await monitorSteps(load, fleet, redis) : NOT_MONITORED;
      // Steps come and go by batches, so a window in the middle of the run would count only one end
      // of some steps. The whole run has as many admissions as answers.
      const steps = checked;
      const meanBatch = steps / batches.length;
      const us = (ms: number) => (ms * 1_000) / steps;
      return {
        inner: innerCalls(spent.calls) / steps,
        scriptBytes: script.bytes - payload,
        inputBytes: spent.inputBytes / steps - payload,
        fileBytes: spent.fileBytes / steps,
        redisUs: us(spent.cpuMs),
        meanBatch,
        checked: checked + script.checked,
        wrong: wrong + script.wrong,
        detail:
          `${steps} steps in ${spent.seconds.toFixed(1)} s, mean batch ${meanBatch.toFixed(1)}, ` +
          `${payload} bytes of tensors each; main thread of Redis ${us(spent.mainThreadMs).toFixed(1)} µs; ` +
          `calls per step: ${describeCalls(spent.calls, steps)}`,
      };
    });
  } finally {
    await fleet.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}

const NOT_MONITORED = { bytes: Number.NaN, checked: 0, wrong: 0 };

/** A short run of its own, because monitoring slows Redis down. */
async function monitorSteps(load: StepsPlan["load"], { redis: { port: redisPort }, port }: BenchFleet, redis: Redis) {
  const monitor = await openMonitor({ port: redisPort, redis });
  const { checked, wrong } = await load(port, MONITORED_MS);
  const { scriptBytes } = await monitor.stop();
  return { bytes: scriptBytes / checked, checked, wrong };
}
