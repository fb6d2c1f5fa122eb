/** The measurements of the response cache: a request that it answers, and requests that run. */
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeRepository, ownConfig } from "../../support/fleet/repository.js";
import { readUntil } from "../../support/until.js";
import { runChild } from "../support/child.js";
import { parts, startBenchFleet, type BenchFleet, type Part } from "../support/fleet.js";
import type { Scenarios } from "../support/rounds.js";
import { ratio, type Percentiles, type Wanted } from "../support/statistics.js";
import type { Timing } from "../steps/scenarios.js";
import type { CacheLoadJob, CacheLoadResult } from "./load.js";

interface CacheResult {
  readonly perSecond: number;
  readonly latencyMs: Percentiles;
  readonly cpuUs: Readonly<Record<Part, number>>;
  /** Hits of all requests, the warm-up included. */
  readonly hitRate: number;
  readonly checked: number;
  readonly wrong: number;
}

export interface CacheRound {
  /** The model has no cache. */
  runs: CacheResult;
  /** All requests come again. */
  hits: CacheResult;
  /** No request comes again. */
  misses: CacheResult;
  /** Some requests come more often than others, and the cache holds few of them. */
  drawn: CacheResult;
}

export const cacheNames: readonly (keyof CacheRound)[] = ["runs", "hits", "misses", "drawn"];

const CONNECTIONS = 64;
const COMMON = 64;
const DRAWN = 4_096;
/** Room for about an eighth of the drawn requests. */
const FEW_BYTES = 400_000;

const all = (result: CacheResult | undefined): number | undefined =>
  result && parts.reduce((sum, part) => sum + result.cpuUs[part], 0);

export const cacheFigures: readonly Wanted<CacheRound>[] = [
  { name: "a request that runs, 64 connections: CPU of all servers, µs", of: ({ runs }) => all(runs) },
  { name: "  of the gateway", of: ({ runs }) => runs?.cpuUs.gateway },
  { name: "  latency p50, ms", of: ({ runs }) => runs?.latencyMs.p50 },
  { name: "a hit: CPU of all servers, µs", of: ({ hits }) => all(hits) },
  { name: "  of the gateway", of: ({ hits }) => hits?.cpuUs.gateway },
  { name: "  of Redis", of: ({ hits }) => hits?.cpuUs.redis },
  { name: "  latency p50, ms", of: ({ hits }) => hits?.latencyMs.p50 },
  { name: "  share of hits", of: ({ hits }) => hits?.hitRate },
  { name: "  CPU ÷ a run's", most: 0.5, of: ({ hits, runs }) => ratio(all(hits), all(runs)) },
  { name: "a miss: CPU of all servers, µs", of: ({ misses }) => all(misses) },
  { name: "  share of hits", of: ({ misses }) => misses?.hitRate },
  { name: "  CPU ÷ a run's", of: ({ misses, runs }) => ratio(all(misses), all(runs)) },
  { name: "4,096 requests by Zipf's law, room for an eighth: share of hits", of: ({ drawn }) => drawn?.hitRate },
  { name: "  CPU ÷ a run's", of: ({ drawn, runs }) => ratio(all(drawn), all(runs)) },
];

export interface CachePlan {
  readonly folder: string;
  readonly timing: Timing;
  readonly onClose: (close: () => Promise<unknown>) => void;
}

/** A model that copies its input: no run costs less, so a hit saves the least. */
const COPIES = "echo-int32";
const MODELS = ["runs", "hits", "misses", "drawn"] as const;

function repositoryIn(folder: string): string {
  makeRepository(folder, [COPIES]);
  for (const name of MODELS) {
    cpSync(join(folder, COPIES), join(folder, name), { recursive: true });
    const config = (ownConfig(COPIES) ?? "")
      .replace(`"${COPIES}"`, `"${name}"`)
      .replace(/max_batch_size: \d+/, "max_batch_size: 64");
    const more = name === "runs" ? "" : "response_cache { enable: true }\n";
    writeFileSync(join(folder, name, "config.pbtxt"), `${config}\n${more}`);
  }
  return folder;
}

type Counts = Readonly<Record<"success" | "cache_hit" | "cache_miss", { readonly count: number }>>;

async function countsOf({ port }: BenchFleet, model: string): Promise<Counts> {
  const answer = await fetch(`http://127.0.0.1:${port}/v2/models/${model}/stats`);
  const { model_stats: all } = (await answer.json()) as {
    readonly model_stats: readonly { readonly inference_stats: Counts }[];
  };
  if (all[0] === undefined) throw new Error(`there is no model ${model}`);
  return all[0].inference_stats;
}

export async function cacheScenarios({ folder, timing, onClose }: CachePlan): Promise<Scenarios<CacheRound>> {
  const repository = repositoryIn(join(folder, "models"));
  const start = async (name: string, common: Readonly<Record<string, string>>): Promise<BenchFleet> => {
    const fleet = await startBenchFleet({
      folder: join(folder, name),
      repository,
      models: MODELS,
      workers: 1,
      env: {},
      common,
    });
    onClose(() => fleet.dispose());
    return fleet;
  };

  const usual = await start("usual", {});
  const small = await start("small", { BATON_CACHE_BYTES: String(FEW_BYTES) });
  // Every request of a round is new to the caches.
  let first = 1;
  const measure = async (fleet: BenchFleet, model: string, distinct: number | undefined, byRank = false) => {
    const job: CacheLoadJob = { port: fleet.port, model, connections: CONNECTIONS, first, distinct, byRank, ...timing };
    const before = await countsOf(fleet, model);
    let [from, to] = [fleet.cpu(), fleet.cpu()];
    const loaded = await runChild<CacheLoadJob, CacheLoadResult>(
      new URL("./load.js", import.meta.url),
      job,
      () => (from = fleet.cpu()),
      () => (to = fleet.cpu()),
    );
    first += distinct ?? loaded.checked + CONNECTIONS;
    const isSettled = ({ success }: Counts) => success.count >= before.success.count + loaded.checked;
    const after = await readUntil(() => countsOf(fleet, model), isSettled);
    const [hits, misses] = [
      after.cache_hit.count - before.cache_hit.count,
      after.cache_miss.count - before.cache_miss.count,
    ];
    return {
      perSecond: loaded.requests / loaded.seconds,
      latencyMs: loaded.latencyMs,
      cpuUs: Object.fromEntries(
        parts.map((part) => [part, ((to[part] - from[part]) * 1_000) / loaded.requests]),
      ) as CacheResult["cpuUs"],
      hitRate: hits / Math.max(1, hits + misses),
      checked: loaded.checked,
      wrong: loaded.wrong,
    };
  };
  return {
    runs: () => measure(usual, "runs", COMMON),
    hits: () => measure(usual, "hits", COMMON),
    misses: () => measure(usual, "misses", undefined),
    drawn: () => measure(small, "drawn", DRAWN, true),
  };
}
