/**
 * The measurements of steps in a round. Each scenario is a single process, or a fleet and a process
 * that loads the fleet.
 */
import type { BareJob, BareResult } from "../bare/measure.js";
import type { BullJob, BullResult } from "../bullmq/measure.js";
import { runChild } from "../support/child.js";
import { busyMs, othersShare } from "../support/cpu.js";
import { parts, type BenchFleet, type Part } from "../support/fleet.js";
import type { Way } from "../load/grpc-connection.js";
import type { LoadJob, LoadResult } from "../load/measure.js";
import { large, tiny, tinyAtOnce, type BenchModel } from "../support/models.js";
import type { Percentiles } from "../support/statistics.js";
import type { Scenarios } from "../support/rounds.js";

export interface Timing {
  readonly warmupMs: number;
  readonly measureMs: number;
}

export const stepNames: readonly (keyof StepRound)[] = [
  "fleet",
  "bareAtFleetBatch",
  "bare64",
  "bare128",
  "bull",
  "tiny",
  "bullTiny",
  "single",
  "bareSingle",
  "offered",
];

export interface Setting {
  readonly fleet: BenchFleet;
  /** Port of BullMQ's own Redis. */
  readonly bullRedisPort: number;
  /** Files of expected outputs, by the model's size. */
  readonly expected: ReadonlyMap<number, string>;
  readonly timing: Timing;
}

export interface FleetResult {
  readonly stepsPerSecond: number;
  readonly meanBatch: number;
  /** Share of the time in which the model ran, from 0 to 1. */
  readonly modelBusy: number;
  /** Mean time of a run inside the model, in milliseconds. */
  readonly runMs: number;
  readonly latencyMs: Percentiles;
  /** How late the load itself was in an open loop, in milliseconds. */
  readonly lateMs: Percentiles;
  /** Microseconds of CPU per step. */
  readonly cpuUs: Readonly<Record<Part | "load", number>>;
  /** Share of the machine that other processes took meanwhile, from 0 to 1. */
  readonly others: number;
  readonly checked: number;
  readonly wrong: number;
}

export interface StepRound {
  fleet: FleetResult;
  bareAtFleetBatch: BareResult & { readonly batch: number };
  bare64: BareResult;
  bare128: BareResult;
  bull: BullResult;
  tiny: FleetResult;
  bullTiny: BullResult;
  single: FleetResult;
  bareSingle: BareResult;
  offered: OfferedResult;
}

/** Latencies of the small model while steps come at random, at shares of the most that it does. */
export interface OfferedResult {
  readonly at: readonly (FleetResult & { readonly share: number })[];
  readonly checked: number;
  readonly wrong: number;
}

/**
 * Loads the fleet with sequences of this model, each on a connection of its own.
 * @param offered steps a second of an open loop; absent: a closed loop
 * @param grpc how steps go over gRPC; absent: over HTTP
 */
export async function measureFleet(
  { fleet, expected, timing }: Pick<Setting, "fleet" | "expected" | "timing">,
  model: BenchModel,
  sequences: number,
  offered?: number,
  grpc?: Way,
): Promise<FleetResult> {
  const job: LoadJob = {
    port: grpc === undefined ? fleet.port : fleet.grpcPort,
    ...(grpc !== undefined && { grpc }),
    model,
    sequences,
    expected: expectedOf(expected, model),
    ...timing,
    ...(offered !== undefined && { offered }),
  };
  const look = () => ({ at: Date.now(), cpu: fleet.cpu(), busyMs: busyMs() });
  let from = look();
  let to = from;
  const loaded = await runChild<LoadJob, LoadResult>(
    new URL("../load/measure.js", import.meta.url),
    job,
    () => (from = look()),
    () => (to = look()),
  );
  const batches = fleet.batches(from.at, to.at);
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  const ranMs = sum(batches.map((batch) => batch.ranMs));
  const perStep = (cpuMs: number) => (cpuMs * 1_000) / loaded.steps;
  const ownMs = loaded.cpuMs + sum(parts.map((part) => to.cpu[part] - from.cpu[part]));
  const cpuUs = Object.fromEntries([
    ...parts.map((part) => [part, perStep(to.cpu[part] - from.cpu[part])]),
    ["load", perStep(loaded.cpuMs)],
  ]) as FleetResult["cpuUs"];
  return {
    stepsPerSecond: loaded.steps / loaded.seconds,
    meanBatch: sum(batches.map(({ rows }) => rows)) / batches.length,
    modelBusy: ranMs / (to.at - from.at),
    runMs: ranMs / batches.length,
    latencyMs: loaded.latencyMs,
    lateMs: loaded.lateMs,
    cpuUs,
    others: othersShare(to.busyMs - from.busyMs, ownMs, to.at - from.at),
    checked: loaded.checked,
    wrong: loaded.wrong,
  };
}

function measureBare({ expected, timing }: Setting, model: BenchModel, batch: number): Promise<BareResult> {
  const job: BareJob = {
    model,
    batch,
    expected: expectedOf(expected, model),
    warmupMs: timing.warmupMs / 2,
    measureMs: timing.measureMs / 2,
  };
  return runChild(new URL("../bare/measure.js", import.meta.url), job);
}

function measureBull(
  { bullRedisPort, expected, timing }: Setting,
  model: BenchModel,
  sequences: number,
): Promise<BullResult> {
  const job: BullJob = {
    redisPort: bullRedisPort,
    model,
    sequences,
    expected: expectedOf(expected, model),
    ...timing,
  };
  return runChild(new URL("../bullmq/measure.js", import.meta.url), job);
}

function expectedOf(expected: ReadonlyMap<number, string>, { size }: BenchModel): string {
  const file = expected.get(size);
  if (file === undefined) throw new Error(`no expected outputs of size ${size}`);
  return file;
}

/** Offers shares of what a closed loop has just brought, so that no share is beyond the fleet. */
async function measureOffered(setting: Setting): Promise<OfferedResult> {
  const { stepsPerSecond: most } = await measureFleet(setting, tiny, TINY_SEQUENCES);
  const at: OfferedResult["at"][number][] = [];
  for (const share of OFFERED) {
    // Many sequences, so that few steps wait for the step before.
    at.push({ share, ...(await measureFleet(setting, tiny, 4 * TINY_SEQUENCES, share * most)) });
  }
  const sum = (count: "checked" | "wrong") => at.reduce((total, one) => total + one[count], 0);
  return { at, checked: sum("checked"), wrong: sum("wrong") };
}

/** Shares of the most that the fleet does. */
export const OFFERED = [0.25, 0.5, 0.75, 0.9] as const;
export const LARGE_SEQUENCES = 128;
export const TINY_SEQUENCES = 64;

/** Warms the fleet up, too. The yardstick runs at the fleet's latest mean batch. */
export async function stepScenarios(setting: Setting): Promise<Scenarios<StepRound>> {
  let { meanBatch } = await measureFleet(setting, large, LARGE_SEQUENCES);
  return {
    async fleet() {
      const result = await measureFleet(setting, large, LARGE_SEQUENCES);
      ({ meanBatch } = result);
      return result;
    },
    async bareAtFleetBatch() {
      const batch = Math.max(1, Math.round(meanBatch));
      return { batch, ...(await measureBare(setting, large, batch)) };
    },
    bare64: () => measureBare(setting, large, 64),
    bare128: () => measureBare(setting, large, 128),
    bull: () => measureBull(setting, large, LARGE_SEQUENCES),
    tiny: () => measureFleet(setting, tiny, TINY_SEQUENCES),
    bullTiny: () => measureBull(setting, tiny, TINY_SEQUENCES),
    single: () => measureFleet(setting, tinyAtOnce, 1),
    bareSingle: () => measureBare(setting, tinyAtOnce, 1),
    offered: () => measureOffered(setting),
  };
}
