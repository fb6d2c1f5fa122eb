/**
 * The answer of `GET /v2/fleet`: the live workers with their models, and every served model with
 * the load of its lanes in Redis now.
 */
import type { Announcement, ServedModel } from "#shared/contract/announcement.js";
import { countLanes, type LaneCounts } from "#shared/queue/admission/count-lanes.js";
import { measures, readPoints, STEP_MS, TURN_MS, type Point } from "#shared/queue/admission/history.js";
import type { QueueLimits } from "#shared/queue/admission/limits.js";
import { readLoadSums, type LoadSum } from "#shared/queue/pieces/load.js";
import { pinOf, pinText } from "#shared/queue/address.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import { registryKeys } from "#shared/queue/keys.js";
import type { ProcessLoad } from "#shared/queue/processes/load-meter.js";
import { readLoads, type LoadedWorker } from "#shared/queue/processes/read-loads.js";
import { readProcesses, type ListedProcess } from "#shared/queue/processes/note-process.js";
import { timeAt } from "#shared/redis/clock.js";
import { masterFor, type RedisClient } from "#shared/redis/connect.js";
import type { Unserved } from "./buckets.js";
import type { GoneBack } from "./gone-back.js";
import { orUnavailable } from "./or-unavailable.js";

export interface AskedLoad {
  readonly redis: RedisClient;
  /** How many lanes each model version has. */
  readonly buckets: number;
  /** Buckets whose server cannot answer; their load is not in the sums. */
  readonly unserved: readonly Unserved[];
  /**
   * The tenant that asks; empty for a caller without a tenant. The answer leaves the load of other
   * tenants out.
   */
  readonly tenant: string;
}

export interface Described extends AskedLoad {
  /** The live workers. */
  readonly workers: readonly Announcement[];
  /** Whether Redis has lost data that Redis had acknowledged. */
  readonly goneBack?: GoneBack | undefined;
  /** The limits of the queue. */
  readonly limits?: QueueLimits | undefined;
}

export type FleetDescription = Awaited<ReturnType<typeof describeFleet>>;

/** @throws InferenceError `unavailable` while the gateway cannot ask Redis */
export async function describeFleet(described: Described) {
  const { redis, workers, unserved, goneBack, limits } = described;
  return orUnavailable(redis, async () => {
    const isAway = listIsAway(redis, unserved);
    const [newest, loads, queue, processes] = await Promise.all([
      isAway ? undefined : newestPoint(redis),
      isAway ? undefined : readLoads(redis, namesOf(workers)),
      describeQueue(described, limits),
      isAway ? undefined : readProcesses(redis),
    ]);
    const fleet = await description(described, newest, loads);
    return { ...fleet, ...(processes && describeProcesses(processes)), queue, gone_back: goneBack?.describe() };
  });
}

/** @throws InferenceError `unavailable` while the gateway cannot ask Redis */
export function loadOfTenant(asked: AskedLoad): Promise<LoadSum> {
  return orUnavailable(asked.redis, async () => (await sumsOf(asked)).get(`t:${asked.tenant}`) ?? none);
}

/** Some processes with metrics at one address, as Prometheus' HTTP service discovery names them. */
export interface ScrapeTarget {
  readonly targets: readonly string[];
  readonly labels: { readonly baton_role: "worker" | ListedProcess["kind"]; readonly baton_process: string };
}

/**
 * Every process that shows metrics.
 * @throws InferenceError `unavailable` while the gateway cannot ask Redis
 */
export async function scrapeTargets(
  { redis, unserved }: Pick<AskedLoad, "redis" | "unserved">,
  workers: readonly Announcement[],
): Promise<ScrapeTarget[]> {
  const others = await orUnavailable(redis, async () => (listIsAway(redis, unserved) ? [] : readProcesses(redis)));
  const all = [
    ...workers.map(({ worker, metrics }) => ({ kind: "worker", name: worker, metrics }) as const),
    ...others,
  ];
  return all.flatMap(({ kind, name, metrics }) =>
    metrics === undefined ? [] : [{ targets: [metrics], labels: { baton_role: kind, baton_process: name } }],
  );
}

export function namesOf(workers: readonly Announcement[]): string[] {
  return workers.map(({ worker }) => worker);
}

async function description(
  { redis, workers, buckets, unserved }: Described,
  newest: Point | undefined,
  loads: ReadonlyMap<string, LoadedWorker> = new Map(),
) {
  const away = new Set(redis.isCluster ? unserved.flatMap((one) => one.buckets) : []);
  const asked = Array.from({ length: buckets }, (_, bucket) => bucket).filter((bucket) => !away.has(bucket));
  const served = new Map(
    workers.flatMap(({ models }) => models.map((model) => [`${model.name}/${pinText(pinOf(model))}`, model])),
  );
  const lanesOf = new Map(
    [...served.values()].map((model) => [
      model,
      asked.map((bucket) => ({ bucket, model: model.name, ...pinOf(model) })),
    ]),
  );
  const counts = await countLanes(redis, [...lanesOf.values()].flat());
  const models = [...lanesOf].map(([model, lanes]) => {
    const { name, version, digest, sequence, warnings } = model;
    const sum = (of: keyof LaneCounts) => lanes.reduce((total, lane) => total + (counts.get(lane)?.[of] ?? 0), 0);
    return {
      name,
      version,
      digest,
      kind: kindOf(model),
      workers: workers.filter(({ models }) =>
        models.some((m) => m.name === name && m.version === version && m.digest === digest),
      ).length,
      queued: sum("queued"),
      running: sum("running"),
      ...(sequence && { live_sequences: sum("live") }),
      set_aside: sum("dead"),
      ...ratesOf(name, newest),
      ...(warnings && { warnings }),
    };
  });
  return {
    durability: redis.durability,
    ...(unserved.length > 0 && { unserved: unserved.map(({ buckets, reason }) => ({ buckets, reason })) }),
    workers: workers.map(({ worker, host, pid, startedAt, device, models, failed, metrics, version }) => ({
      name: worker,
      host,
      pid,
      started_at: new Date(startedAt).toISOString(),
      ...(device && { device: describeDevice(device) }),
      models: models.map(({ name, version, placement }) => ({ name, version, ...placement })),
      failed,
      ...(metrics !== undefined && { metrics }),
      ...(version !== undefined && { version }),
      ...describeWorkerLoad(loads.get(worker)),
    })),
    models,
  };
}

/** What a request for the model is. */
function kindOf({ generator, sequence }: ServedModel): "generator" | "sequence" | "tensor" {
  if (generator !== undefined) return "generator";
  return sequence === undefined ? "tensor" : "sequence";
}

/** The newest point of the history; undefined if no gateway has observed lately. */
async function newestPoint(redis: RedisClient): Promise<Point | undefined> {
  const [[point], now] = await Promise.all([readPoints(redis, 1), timeAt(redis, registryKeys.history)]);
  return point !== undefined && now - point.at < TURN_MS ? point : undefined;
}

/** Of all versions of the model, as far as the observer knew them a moment ago. */
function ratesOf(model: string, newest: Point | undefined) {
  const values = newest?.models[model];
  const valueOf = (measure: (typeof measures)[number]) => values?.[measures.indexOf(measure)] ?? undefined;
  const [steps, oldestMs] = [valueOf("steps"), valueOf("oldest_ms")];
  return {
    ...(steps !== undefined && { steps_per_second: Number(((steps * 1_000) / STEP_MS).toPrecision(3)) }),
    ...(oldestMs !== undefined && { oldest_ms: oldestMs }),
  };
}

/** Whether the list of processes lies on a master of a Cluster that cannot answer. */
function listIsAway(redis: RedisClient, unserved: readonly Unserved[]): boolean {
  if (!redis.isCluster) return false;
  const master = masterFor(redis, registryKeys.processes);
  return unserved.some(({ buckets }) => buckets.some((bucket) => masterFor(redis, bucketTag(bucket)) === master));
}

function describeProcesses(processes: readonly ListedProcess[]) {
  const ofKind = (wanted: ListedProcess["kind"]) =>
    processes
      .filter(({ kind }) => kind === wanted)
      .map(({ name, host, pid, startedAt, metrics, version, load, connections }) => ({
        name,
        host,
        pid,
        started_at: startedAt,
        ...(metrics !== undefined && { metrics }),
        ...(version !== undefined && { version }),
        ...(load && { load: describeLoad(load) }),
        ...(connections && { connections }),
      }));
  return { gateways: ofKind("gateway"), jobs: ofKind("jobs") };
}

function describeLoad({ cpuRatio, eventLoopMs, memoryBytes }: ProcessLoad) {
  return { cpu_ratio: cpuRatio, event_loop_ms: eventLoopMs, memory_bytes: memoryBytes };
}

/** Nothing for a worker of the version before, which does not tell. */
function describeWorkerLoad(loaded: LoadedWorker | undefined) {
  if (loaded === undefined) return {};
  const { load, beatAgeMs } = loaded;
  return {
    ...(beatAgeMs !== undefined && { beat_age_ms: beatAgeMs }),
    load: {
      ...describeLoad(load),
      steps_per_second: load.stepsPerSecond,
      tokens_per_second: load.tokensPerSecond,
      busy_ratio: load.busyRatio,
      held: load.held,
    },
  };
}

function describeDevice({ memory, ...device }: NonNullable<Announcement["device"]>) {
  return { ...device, ...(memory && { memory: { total_bytes: memory.total, used_bytes: memory.used } }) };
}

const none: LoadSum = { requests: 0, bytes: 0 };

/** The load of the queue in all buckets that answer, by its field. */
function sumsOf({ redis, buckets, unserved }: AskedLoad): Promise<ReadonlyMap<string, LoadSum>> {
  return readLoadSums(redis, buckets, new Set(unserved.flatMap((one) => one.buckets)));
}

/** The load of the queue by model and of the tenant that asks, and the limits. */
async function describeQueue(asked: AskedLoad, limits: QueueLimits | undefined) {
  const sums = await sumsOf(asked);
  const named = (kind: string) =>
    [...sums].flatMap(([field, sum]) => (field.startsWith(kind) ? [{ name: field.slice(kind.length), ...sum }] : []));
  const results = sums.get("kept") ?? none;
  const delayed = sums.get("later") ?? none;
  return {
    ...(sums.get("all") ?? none),
    models: named("m:"),
    tenants: named("t:").filter(({ name }) => name === asked.tenant),
    results: { count: results.requests, bytes: results.bytes },
    delayed: { jobs: delayed.requests, bytes: delayed.bytes },
    limits: limits && {
      model_requests: limits.queue,
      model_bytes: limits.queueBytes,
      model_sequences: limits.liveSequences,
      tenant_requests: limits.tenantQueue,
      tenant_bytes: limits.tenantQueueBytes,
      bytes: limits.totalBytes,
      result_bytes: limits.keptBytes,
      tenant_delayed: limits.laterJobs,
      delayed_bytes: limits.laterBytes,
    },
  };
}
