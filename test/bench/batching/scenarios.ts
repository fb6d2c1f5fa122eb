/** The measurements of batches: a fleet of each size, and the same loads on each. */
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeRepository, ownConfig, withParameter } from "../../support/fleet/repository.js";
import { readUntil } from "../../support/until.js";
import { runChild } from "../support/child.js";
import { parts, startBenchFleet, type BenchFleet, type Part } from "../support/fleet.js";
import type { Scenarios } from "../support/rounds.js";
import { percentiles, type Percentiles, type Wanted } from "../support/statistics.js";
import type { BatchingLoadJob, BatchingLoadResult, Pattern } from "./load.js";
import { byRule } from "./rule.js";

type Sizes = ReadonlyMap<number, number>;

interface Batches {
  readonly sizes: Sizes;
  readonly latencyMs: Percentiles;
}

interface LoadResult {
  readonly fleet: Batches;
  /** The same arrivals by Triton's rule, with an instance for each worker. */
  readonly rule: Batches;
  readonly perSecond: number;
  readonly cpuUs: Readonly<Record<Part, number>>;
}

interface BatchingResult {
  /** By the name of the model, and of the load. */
  readonly loads: Readonly<Record<string, LoadResult>>;
  readonly checked: number;
  readonly wrong: number;
}

export interface BatchingRound {
  batching1: BatchingResult;
  batching2: BatchingResult;
  batching8: BatchingResult;
}

const WORKERS = { batching1: 1, batching2: 2, batching8: 8 } as const;
export const batchingNames: readonly (keyof BatchingRound)[] = ["batching1", "batching2", "batching8"];

/** A model that copies its input, on a device whose every run takes as long. */
const COPIES = "echo-int32";
const RUN_MS = 5;
const DELAY_MS = 40;
const MOST = 8;
const PREFERRED = { fours: [4], "fours-eights": [4, 8] } as const;
type Model = keyof typeof PREFERRED;
const MODELS = Object.keys(PREFERRED) as readonly Model[];

/** On average six requests come within the delay of the sparse load. */
const patternsFor = (quick: boolean): Readonly<Record<string, Pattern>> => ({
  together: { kind: "together", sizes: [4, 6, 8], groups: quick ? 30 : 90 },
  sparse: { kind: "sparse", perSecond: 150, requests: quick ? 300 : 900 },
  loaded: { kind: "loaded", connections: 48, requests: quick ? 3_000 : 12_000 },
});
const WARM_UP: Pattern = { kind: "loaded", connections: 48, requests: 1_500 };
const LOADS = Object.keys(patternsFor(true));

/** @returns the share of all requests whose batch had a preferred size */
function preferredShare({ sizes }: Batches, model: Model): number {
  const preferred: readonly number[] = PREFERRED[model];
  const rows = (of: readonly (readonly [number, number])[]) => of.reduce((sum, [size, count]) => sum + size * count, 0);
  return rows([...sizes].filter(([size]) => preferred.includes(size))) / rows([...sizes]);
}

export const batchingFigures: readonly Wanted<BatchingRound>[] = batchingNames.flatMap((name) =>
  MODELS.flatMap((model) =>
    LOADS.flatMap((load): Wanted<BatchingRound>[] => {
      const at = (round: Partial<BatchingRound>) => round[name]?.loads[`${model} ${load}`];
      const share = (of: "fleet" | "rule") => (round: Partial<BatchingRound>) => {
        const result = at(round);
        return result && preferredShare(result[of], model);
      };
      return [
        { name: `${WORKERS[name]} workers, ${model}, ${load}: share in preferred sizes`, of: share("fleet") },
        { name: "  by the rule", of: share("rule") },
        { name: "  latency p50, ms", of: (round) => at(round)?.fleet.latencyMs.p50 },
        { name: "  by the rule", of: (round) => at(round)?.rule.latencyMs.p50 },
        { name: "  latency p99, ms", of: (round) => at(round)?.fleet.latencyMs.p99 },
        { name: "  by the rule", of: (round) => at(round)?.rule.latencyMs.p99 },
        { name: "  requests/s", of: (round) => at(round)?.perSecond },
        { name: "  CPU of all servers, µs", of: (round) => allCpu(at(round)) },
      ];
    }),
  ),
);

const allCpu = (result: LoadResult | undefined): number | undefined =>
  result && parts.reduce((sum, part) => sum + result.cpuUs[part], 0);

/** The sizes of the last round, which no single number shows. */
export function batchingDetails(rounds: readonly Partial<BatchingRound>[]): string[] {
  return batchingNames.flatMap((name) => {
    const loads = rounds.findLast((round) => round[name] !== undefined)?.[name]?.loads ?? {};
    return Object.entries(loads).map(
      ([load, { fleet, rule }]) =>
        `${WORKERS[name]} workers, ${load}: batches ${shown(fleet.sizes)}; by the rule ${shown(rule.sizes)}`,
    );
  });
}

/** As `size×count`, the smallest size first. */
function shown(sizes: Sizes): string {
  const sorted = [...sizes].sort(([a], [b]) => a - b);
  return sorted.map(([size, count]) => `${size}×${count}`).join(" ");
}

export interface BatchingPlan {
  readonly folder: string;
  readonly quick: boolean;
}

function repositoryIn(folder: string): string {
  makeRepository(folder, [COPIES]);
  for (const name of MODELS) {
    cpSync(join(folder, COPIES), join(folder, name), { recursive: true });
    const batching = `preferred_batch_size: [ ${PREFERRED[name].join(", ")} ] max_queue_delay_microseconds: ${DELAY_MS * 1_000}`;
    const config = (ownConfig(COPIES) ?? "")
      .replace(`"${COPIES}"`, `"${name}"`)
      .replace(/max_batch_size: \d+/, `max_batch_size: ${MOST}`)
      .replace("dynamic_batching { }", `dynamic_batching { ${batching} }`);
    writeFileSync(join(folder, name, "config.pbtxt"), withParameter(config, "execute_delay_ms", String(RUN_MS)));
  }
  return folder;
}

interface Counts {
  readonly success: number;
  readonly sizes: Sizes;
}

async function countsOf({ port }: BenchFleet, model: string): Promise<Counts> {
  const answer = await fetch(`http://127.0.0.1:${port}/v2/models/${model}/stats`);
  const { model_stats: all } = (await answer.json()) as {
    readonly model_stats: readonly {
      readonly inference_stats: { readonly success: { readonly count: number } };
      readonly batch_stats: readonly {
        readonly batch_size: number;
        readonly compute_infer: { readonly count: number };
      }[];
    }[];
  };
  const [stats] = all;
  if (stats === undefined) throw new Error(`there is no model ${model}`);
  return {
    success: stats.inference_stats.success.count,
    sizes: new Map(stats.batch_stats.map(({ batch_size: size, compute_infer: { count } }) => [size, count])),
  };
}

/** Sends one load, and waits until the statistics have all of it. */
async function measureLoad(fleet: BenchFleet, workers: number, model: Model, pattern: Pattern) {
  const job: BatchingLoadJob = { port: fleet.port, model, pattern };
  const before = await countsOf(fleet, model);
  let [from, to] = [fleet.cpu(), fleet.cpu()];
  const loaded = await runChild<BatchingLoadJob, BatchingLoadResult>(
    new URL("./load.js", import.meta.url),
    job,
    () => (from = fleet.cpu()),
    () => (to = fleet.cpu()),
  );
  const isSettled = ({ success }: Counts) => success >= before.success + loaded.checked;
  const after = await readUntil(() => countsOf(fleet, model), isSettled);
  const ran = [...after.sizes].map(([size, count]) => [size, count - (before.sizes.get(size) ?? 0)] as const);
  const limits = { maxBatchSize: MOST, maxDelayMs: DELAY_MS, preferred: PREFERRED[model] };
  const ruled = loaded.groups.map((arrivals) => byRule(arrivals, limits, workers, RUN_MS));
  const ruledSizes = new Map<number, number>();
  for (const { sizes } of ruled)
    for (const [size, count] of sizes) ruledSizes.set(size, (ruledSizes.get(size) ?? 0) + count);
  const result: LoadResult = {
    fleet: {
      sizes: new Map(ran.filter(([, count]) => count > 0)),
      latencyMs: percentiles(loaded.latencies),
    },
    rule: { sizes: ruledSizes, latencyMs: percentiles(ruled.flatMap(({ latencies }) => latencies)) },
    perSecond: loaded.checked / loaded.seconds,
    cpuUs: Object.fromEntries(
      parts.map((part) => [part, ((to[part] - from[part]) * 1_000) / loaded.checked]),
    ) as LoadResult["cpuUs"],
  };
  return { result, ...loaded };
}

export function batchingScenarios({ folder, quick }: BatchingPlan): Scenarios<BatchingRound> {
  const repository = repositoryIn(join(folder, "batching-models"));
  let fleets = 0;
  const measure = async (workers: number): Promise<BatchingResult> => {
    const fleet = await startBenchFleet({
      folder: join(folder, `batching-${++fleets}`),
      repository,
      models: MODELS,
      workers,
      env: {},
    });
    try {
      const loads: Record<string, LoadResult> = {};
      let [checked, wrong] = [0, 0];
      for (const model of MODELS) {
        await measureLoad(fleet, workers, model, WARM_UP);
        for (const [name, pattern] of Object.entries(patternsFor(quick))) {
          const one = await measureLoad(fleet, workers, model, pattern);
          loads[`${model} ${name}`] = one.result;
          checked += one.checked;
          wrong += one.wrong;
        }
      }
      return { loads, checked, wrong };
    } finally {
      await fleet.dispose();
    }
  };
  return {
    batching1: () => measure(WORKERS.batching1),
    batching2: () => measure(WORKERS.batching2),
    batching8: () => measure(WORKERS.batching8),
  };
}
