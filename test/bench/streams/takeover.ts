/** A worker killed under a stream, at histories of several lengths: what the client waits beyond the lease, and what of it the recomputing is. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { GROUP, laneKeys } from "#shared/keys.js";
import { runChild } from "../child.js";
import { startBenchFleet, type BenchFleet, type BenchFleetPlan } from "../fleet.js";
import { long } from "../models.js";
import type { InterruptedJob, InterruptedResult } from "./interrupted.js";
import type { Recompute, RecomputeJob } from "./recompute.js";

export interface TakeoverPlan {
  /** Where a fleet of its own may lie: of two workers. */
  readonly folder: string;
  readonly repository: string;
  readonly references: string;
  /** Kills at each length. */
  readonly times: number;
  readonly progress: (line: string) => void;
}

export interface Takeovers {
  readonly history: number;
  /** The client's longest pause, less the lease; of each kill. */
  readonly beyondLeaseMs: readonly number[];
  /** Tokens that were really there. */
  readonly histories: readonly number[];
}

export interface TakeoverResult {
  readonly leaseMs: number;
  readonly takeovers: readonly Takeovers[];
  readonly recompute: readonly Recompute[];
  readonly checked: number;
  readonly wrong: number;
}

export const HISTORIES = [100, 500, 2_000] as const;

const LEASE_MS = 1_000;
/** Tokens after the kill: more than are made while it is on its way. */
const REST = 512;
/** The default of BATON_PREFILL_TOKENS. */
const CHUNK = 256;

/** Each stream has a prompt of its own: caches of one seen before would spare the recomputing. One more warms the survivor up. */
export function promptsFor(times: number): number {
  return 1 + HISTORIES.length * times;
}

export async function measureTakeovers(plan: TakeoverPlan): Promise<TakeoverResult> {
  const { references, times } = plan;
  const job: RecomputeJob = { model: long, references, histories: HISTORIES, chunk: CHUNK };
  const { passes } = await runChild<RecomputeJob, { passes: Recompute[] }>(
    new URL("./recompute.js", import.meta.url),
    job,
  );
  const folder = mkdtempSync(join(plan.folder, "takeover-"));
  const fleetPlan: BenchFleetPlan = {
    folder,
    repository: plan.repository,
    models: [long.name],
    workers: 2,
    env: { BATON_LEASE_MS: String(LEASE_MS), BATON_MODELS: long.name },
  };
  const fleet = await startBenchFleet(fleetPlan);
  try {
    let prompt = 0;
    const takeovers: Takeovers[] = [];
    const results: InterruptedResult[] = [];
    const interrupt = async (history: number) => {
      const result = await interruptOne(fleet, { references, prompt: prompt++, history });
      if (result.fault !== undefined) plan.progress(`takeover at ${history}: ${result.fault}`);
      results.push(result);
      return result;
    };
    await interrupt(HISTORIES[0]); // warms the survivor up
    for (const history of HISTORIES) {
      const own: InterruptedResult[] = [];
      for (let i = 0; i < times; i++) own.push(await interrupt(history));
      takeovers.push({
        history,
        beyondLeaseMs: own.map(({ pauseMs }) => pauseMs - LEASE_MS),
        histories: own.map((result) => result.history),
      });
    }
    const total = (count: "checked" | "wrong") => results.reduce((sum, result) => sum + result[count], 0);
    return { leaseMs: LEASE_MS, takeovers, recompute: passes, checked: total("checked"), wrong: total("wrong") };
  } finally {
    await fleet.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function interruptOne(
  fleet: BenchFleet,
  { references, prompt, history }: Pick<InterruptedJob, "references" | "prompt" | "history">,
): Promise<InterruptedResult> {
  const redis = fleet.redis.connect();
  let killed: Promise<() => Promise<void>> | undefined;
  const kill = async () => {
    const holder = await holderOf(redis);
    const worker = fleet.workers.find(({ name }) => holder.startsWith(`${name}.`));
    if (worker === undefined) throw new Error(`nobody holds the stream: "${holder}"`);
    await worker.kill();
    return () => worker.start();
  };
  const job: InterruptedJob = { port: fleet.port, model: long, references, prompt, history, tokens: history + REST };
  try {
    const result = await runChild<InterruptedJob, InterruptedResult>(
      new URL("./interrupted.js", import.meta.url),
      job,
      () => {
        killed = kill();
        killed.catch(() => undefined); // told below
      },
    );
    if (killed === undefined) throw new Error("the stream ended before its worker was killed");
    const restart = await killed;
    await restart();
    return result;
  } finally {
    redis.disconnect();
  }
}

/** @returns the consumer's name: the worker's, and its boot's. */
async function holderOf(redis: ReturnType<BenchFleet["redis"]["connect"]>): Promise<string> {
  const { ready } = laneKeys({ model: long.name, version: "1", shard: 0 });
  const [first] = (await redis.xpending(ready, GROUP, "-", "+", 1)) as [string, string, number, number][];
  return first?.[1] ?? "";
}
