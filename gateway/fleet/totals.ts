/**
 * The statistics of models over the whole fleet and its past, in Triton's form. They come from the
 * reports that all processes bring to Redis. Pure.
 */
import type { Announcement } from "#shared/contract/announcement.js";
import {
  addedSums,
  cacheSums,
  responseSums,
  RESPONSES_A_PART,
  runSums,
  versionSums,
  type ReportPart,
} from "#shared/queue/pieces/report.js";

/** A version by its names. */
export interface VersionName {
  readonly name: string;
  readonly version: string;
}

/** The sums of a version over all processes, as their reports name them. */
export interface VersionTotals {
  readonly last: number;
  readonly of: Readonly<Record<(typeof versionSums)[number], number>>;
  /** By the number of rows, ascending. */
  readonly runs: readonly (readonly [rows: number, sums: readonly number[]])[];
  /** By the first index, ascending. */
  readonly responses: readonly (readonly [first: number, sums: readonly number[]])[];
  /** Requests by the bucket of their time. */
  readonly times: readonly number[];
  readonly cache: Readonly<Record<(typeof cacheSums)[number], number>>;
}

interface Adding {
  last: number;
  sums: readonly number[];
  readonly runs: Map<number, readonly number[]>;
  readonly responses: Map<number, readonly number[]>;
  readonly times: Map<number, readonly number[]>;
  readonly cache: Map<number, readonly number[]>;
}

/** @returns a function that gives the totals of a version, zeros for one that never ran */
export function totalsOf(parts: readonly ReportPart[]): (version: VersionName) => VersionTotals {
  const all = new Map<string, Adding>();
  for (const { model, version, part, last, sums } of parts) {
    if (part.of === "jobs") continue;
    const name = `${model}/${version}`;
    const own = all.get(name) ?? newTotals();
    all.set(name, own);
    own.last = Math.max(own.last, last);
    if (part.of === "version") own.sums = addedSums(own.sums, sums);
    else own[part.of].set(part.n, addedSums(own[part.of].get(part.n), sums));
  }
  return ({ name, version }) => {
    const { last, sums, runs, responses, times, cache } = all.get(`${name}/${version}`) ?? newTotals();
    return {
      last,
      of: byName(versionSums, sums),
      runs: ascending(runs),
      responses: ascending(responses),
      times: times.get(0) ?? [],
      cache: byName(cacheSums, cache.get(0)),
    };
  };
}

function newTotals(): Adding {
  return { last: 0, sums: [], runs: new Map(), responses: new Map(), times: new Map(), cache: new Map() };
}

function byName<Sum extends string>(names: readonly Sum[], sums: readonly number[] = []): Record<Sum, number> {
  return Object.fromEntries(names.map((name, i) => [name, sums[i] ?? 0])) as Record<Sum, number>;
}

function ascending<Value>(entries: Iterable<readonly [number, Value]>): (readonly [number, Value])[] {
  return [...entries].toSorted(([a], [b]) => a - b);
}

/** Memory of a version in all workers, in Triton's words. */
export interface MemoryUsage {
  readonly type: "CPU" | "GPU";
  readonly id: number;
  readonly byte_size: number;
}

/**
 * The memory of all versions: the weights on the device that runs the version, and in the worker's
 * own memory what the worker keeps of sequences and generations. Equal places of several workers
 * are one. A fleet has many workers and versions, so this looks at each announcement once.
 * @param cachedIn bytes that a worker keeps beside the weights, by `model/version`
 * @returns a function that gives the memory of a version
 */
export function memoryOf(
  workers: readonly Announcement[],
  cachedIn: (worker: string) => Readonly<Record<string, number>>,
): (version: VersionName) => MemoryUsage[] {
  const all = new Map<string, Map<string, MemoryUsage>>();
  for (const { worker, models } of workers) {
    const cached = cachedIn(worker);
    for (const { name, version, weightBytes = 0, placement } of models) {
      const key = `${name}/${version}`;
      const places = all.get(key) ?? new Map<string, MemoryUsage>();
      all.set(key, places);
      const add = (type: MemoryUsage["type"], id: number, bytes: number) => {
        const before = places.get(`${type} ${id}`)?.byte_size ?? 0;
        if (before + bytes > 0) places.set(`${type} ${id}`, { type, id, byte_size: before + bytes });
      };
      if (placement?.gpu === undefined) add("CPU", 0, weightBytes);
      else add("GPU", placement.gpu, weightBytes);
      add("CPU", 0, cached[key] ?? 0);
    }
  }
  return ({ name, version }) =>
    [...(all.get(`${name}/${version}`)?.values() ?? [])].toSorted((a, b) =>
      a.type === b.type ? a.id - b.id : a.type < b.type ? -1 : 1,
    );
}

/** The statistics of one version, as Triton's clients read them. */
export function statisticsOf(
  { name, version }: VersionName,
  { last, of, runs, responses, cache }: VersionTotals,
  memory: readonly MemoryUsage[],
) {
  const { success, fail } = of;
  // As in Triton, a request that the cache has answered is a success without a run.
  const computed = success - cache.hits;
  return {
    name,
    version,
    last_inference: last,
    inference_count: of.rows,
    execution_count: of.runs,
    inference_stats: {
      success: spent(success, of.requestUs),
      fail: spent(fail, of.failUs),
      queue: spent(success, of.queueUs),
      compute_input: spent(computed, of.inputUs),
      compute_infer: spent(computed, of.inferUs),
      compute_output: spent(computed, of.outputUs),
      cache_hit: spent(cache.hits, cache.hitUs),
      cache_miss: spent(cache.misses, cache.missUs),
    },
    response_stats: Object.fromEntries(responses.flatMap(([first, sums]) => responsesOf(first, sums))),
    batch_stats: runs.map(([rows, sums]) => {
      const [count = 0, inputUs = 0, inferUs = 0, outputUs = 0] = runSums.map((_, i) => sums[i] ?? 0);
      return {
        batch_size: rows,
        compute_input: spent(count, inputUs),
        compute_infer: spent(count, inferUs),
        compute_output: spent(count, outputUs),
      };
    }),
    memory_usage: memory,
  };
}

/** The responses of a part, by index. */
function responsesOf(first: number, sums: readonly number[]) {
  return Array.from({ length: RESPONSES_A_PART }, (_, i) => {
    const of = (name: (typeof responseSums)[number]) => sums[i * responseSums.length + responseSums.indexOf(name)] ?? 0;
    const made = spent(of("success"), of("successUs"));
    const response = {
      compute_infer: made,
      compute_output: spent(of("success"), 0),
      success: made,
      fail: spent(of("fail"), of("failUs")),
      empty_response: spent(0, 0),
      cancel: spent(of("cancel"), of("cancelUs")),
    };
    const isThere = of("success") + of("fail") + of("cancel") > 0;
    return isThere ? [[String(first + i), response] as const] : [];
  }).flat();
}

function spent(count: number, us: number) {
  return { count, ns: us * NS_PER_US };
}

const NS_PER_US = 1_000;
