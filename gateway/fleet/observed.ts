/** The observer's figures as samples for its page of metrics. Pure. */
import type { Announcement } from "#shared/contract/announcement.js";
import type { Cells, Sample } from "#shared/metrics/cells.js";
import { observed } from "#shared/metrics/observed-families.js";
import type { QueueLimits } from "#shared/queue/admission/limits.js";
import type { ServerMemory } from "#shared/redis/memory.js";
import type { BesideQueue } from "./beside-queue.js";
import type { EndedJobs } from "./ended-jobs.js";
import type { QueueLook, VersionQueue } from "./queue-look.js";
import type { VersionName } from "./totals.js";

/** What the observer knows of the fleet in a round. */
export interface Observed {
  readonly look: QueueLook;
  readonly workers: readonly Announcement[];
  /** Workers that have gone in the last ten minutes. */
  readonly lapsed: readonly Announcement[];
  readonly unservedBuckets: number;
  readonly limits: QueueLimits;
  /** How many gateways and jobs processes live. */
  readonly processes: Readonly<Record<"gateway" | "jobs", number>>;
  readonly beside: BesideQueue;
  /** Jobs that live workers hold. */
  readonly jobsHeld: number;
  /** Undefined while a bucket is away, because its ends are missing. */
  readonly ended: readonly EndedJobs[] | undefined;
}

type ObservedName = keyof typeof observed;

const observedNames = Object.keys(observed) as ObservedName[];

/** The samples of every family of the observer. */
function samplesOf(cells: Cells, seen: Observed): Readonly<Record<ObservedName, readonly Sample[]>> {
  const { look, workers, lapsed, unservedBuckets, limits, processes, beside } = seen;
  const versions = versionsOf(workers, lapsed).map((version) => queueOf(version, look));
  const models = [...new Set(versions.map(({ name }) => name))];
  const ofVersions = (valuesOf: (version: WaitingVersion) => readonly (readonly [Record<string, string>, number])[]) =>
    versions.flatMap((version) =>
      valuesOf(version).map(([more, value]) => ({
        labels: { ...cells.modelLabels(version.name, version.version), ...more },
        value,
      })),
    );
  const load = (field: string) => look.loads.get(field) ?? { requests: 0, bytes: 0 };
  const ofModels = (valueOf: (model: string) => number | undefined, more: Record<string, string> = {}): Sample[] =>
    models.flatMap((model) => {
      const value = valueOf(model);
      return value === undefined ? [] : [{ labels: { model, ...more }, value }];
    });
  const ratio = (used: number, most: number | undefined) =>
    most === undefined || most <= 0 || !Number.isFinite(most) ? undefined : used / most;
  const one = (value: number): Sample[] => [{ labels: {}, value }];
  return {
    nv_inference_pending_request_count: ofVersions(({ ready, parked, behind }) => [[{}, ready + parked + behind]]),
    baton_queue_requests: ofVersions(({ ready, parked, behind, running }) => [
      [{ state: "ready" }, ready],
      [{ state: "parked" }, parked],
      [{ state: "behind_sequence" }, behind],
      [{ state: "running" }, running],
    ]),
    baton_queue_level_requests: added(
      versions.flatMap(({ name, levels }) =>
        levels.map((value, i) => ({ labels: { model: name, level: String(i + 1) }, value })),
      ),
    ),
    baton_queue_oldest_seconds: largest(ofVersions(({ oldestMs }) => [[{}, oldestMs / 1_000]])),
    baton_queue_bytes: ofModels((model) => load(`m:${model}`).bytes),
    baton_queue_limit_ratio: [
      ...ofModels((model) => ratio(load(`m:${model}`).requests, limits.queue), { limit: "requests" }),
      ...ofModels((model) => ratio(load(`m:${model}`).bytes, limits.queueBytes), { limit: "bytes" }),
      ...ofModels((model) => ratio(load(`s:${model}`).requests, limits.liveSequences), { limit: "sequences" }),
    ],
    baton_sequences: sequenceModels(workers, lapsed).flatMap((model) => {
      const all = load(`s:${model}`).requests;
      const hibernating = all === 0 ? 0 : beside.buckets?.hibernating.get(model);
      // A sequence has one request at a time that is ready, parked or running.
      const own = versions.filter(({ name }) => name === model);
      const busy = own.reduce((sum, { ready, parked, running }) => sum + ready + parked + running, 0);
      // As long as it is unknown how many hibernate, it is unknown how many are idle in memory.
      const known =
        hibernating === undefined ? { busy } : { busy, hibernating, live: Math.max(0, all - busy - hibernating) };
      return Object.entries(known).map(([state, value]) => ({ labels: { model, state }, value }));
    }),
    baton_delayed_jobs: one(load("later").requests),
    ...samplesOfJobs(cells, seen),
    baton_results_bytes: one(load("kept").bytes),
    ...samplesBeside(beside),
    ...samplesOfTenants(cells, seen),
    baton_unserved_buckets: one(unservedBuckets),
    baton_fleet_processes: Object.entries({ ...processes, worker: workers.length }).map(([role, value]) => ({
      labels: { role },
      value,
    })),
    baton_model_workers: ofVersions(({ name, version }) => [
      [{}, workers.filter(({ models: all }) => all.some((m) => m.name === name && m.version === version)).length],
    ]),
  };
}

function samplesOfJobs(cells: Cells, { look, jobsHeld, ended = [] }: Observed) {
  const load = (field: string) => look.loads.get(field)?.requests ?? 0;
  const open = load("g:j");
  // The reports of workers are up to a second older than the counts.
  const running = Math.min(open, jobsHeld);
  return {
    baton_jobs: Object.entries({ scheduled: load("later"), queued: open - running, running }).map(([state, value]) => ({
      labels: { state },
      value,
    })),
    baton_jobs_ended_total: added(
      ended.map(({ model, state, count }) => ({ labels: { model: cells.modelName(model), state }, value: count })),
    ),
  };
}

type BesideName =
  | "baton_outbox_events"
  | "baton_dead_requests"
  | `baton_webhook_${"pending" | "oldest_seconds"}`
  | "baton_batches"
  | `baton_redis_${"memory_bytes" | "memory_limit_bytes" | "replicas"}`;

function samplesBeside(beside: BesideQueue): Readonly<Record<BesideName, readonly Sample[]>> {
  const { buckets, webhooks, batches, servers = [] } = beside;
  const one = (value: number | undefined): Sample[] => (value === undefined ? [] : [{ labels: {}, value }]);
  const ofServers = (valueOf: (server: ServerMemory) => number | undefined): Sample[] =>
    servers.flatMap((server) => {
      const value = valueOf(server);
      return value === undefined ? [] : [{ labels: { node: server.node }, value }];
    });
  return {
    baton_outbox_events: one(buckets?.events),
    baton_dead_requests: one(buckets?.dead),
    baton_webhook_pending: one(webhooks?.pending),
    baton_webhook_oldest_seconds: one(webhooks && webhooks.oldestMs / 1_000),
    baton_batches:
      batches === undefined ? [] : openStatuses.map((state) => ({ labels: { state }, value: batches.get(state) ?? 0 })),
    baton_redis_memory_bytes: ofServers(({ used }) => used),
    baton_redis_memory_limit_bytes: ofServers(({ limit }) => (limit > 0 ? limit : undefined)),
    baton_redis_replicas: ofServers(({ replicas }) => replicas),
  };
}

/** The statuses of batches with work to do. */
const openStatuses = ["validating", "in_progress", "finalizing", "cancelling"] as const;

type TenantName = `baton_tenant_${"requests" | "bytes"}` | "baton_budget_used_ratio";

/** Absent if no tenant has series. A tenant with nothing in the queue keeps its series, at 0. */
function samplesOfTenants(cells: Cells, { look, beside }: Observed): Readonly<Record<TenantName, readonly Sample[]>> {
  const inQueue = [...look.loads].flatMap(([field, load]) =>
    field.startsWith("t:") ? [[field.slice("t:".length), load] as const] : [],
  );
  const loads = inQueue.flatMap(([name, load]) => {
    const tenant = cells.tenantName(name);
    return tenant === undefined ? [] : [{ tenant, ...load }];
  });
  const quiet = cells.tenants.map((tenant) => ({ tenant, requests: 0, bytes: 0 }));
  const samples = (of: "requests" | "bytes"): Sample[] =>
    added([...quiet, ...loads].map((one) => ({ labels: { tenant: one.tenant }, value: one[of] })));
  const budgets = [...(beside.budgets ?? [])].flatMap(([tenant, used]) =>
    Object.entries(used).map(([budget, value]) => ({ labels: { tenant, budget }, value })),
  );
  return {
    baton_tenant_requests: samples("requests"),
    baton_tenant_bytes: samples("bytes"),
    baton_budget_used_ratio: budgets,
  };
}

/** The models of sequences that some of the workers serve. */
export function sequenceModels(...workers: readonly (readonly Announcement[])[]): string[] {
  const all = workers.flat().flatMap(({ models }) => models);
  return [...new Set(all.flatMap(({ name, sequence }) => (sequence === undefined ? [] : [name])))];
}

/** Adds up samples with equal labels. */
function added(samples: readonly Sample[]): Sample[] {
  const sums = new Map<string, Sample>();
  for (const { labels, value } of samples) {
    const key = JSON.stringify(labels);
    sums.set(key, { labels, value: value + (sums.get(key)?.value ?? 0) });
  }
  return [...sums.values()];
}

/** Of samples with equal labels, such as those of all models beyond the limit, the largest. */
function largest(samples: readonly Sample[]): Sample[] {
  const found = new Map<string, Sample>();
  for (const sample of samples) {
    const key = JSON.stringify(sample.labels);
    if (sample.value >= (found.get(key)?.value ?? 0)) found.set(key, sample);
  }
  return [...found.values()];
}

/** Puts the figures on the page, or takes them off for a gateway that does not observe. */
export function show(cells: Cells, seen: Observed | undefined): void {
  const samples = seen && samplesOf(cells, seen);
  for (const name of observedNames) cells.replace(name, samples?.[name] ?? []);
}

export interface WaitingVersion extends VersionQueue {
  /** Requests that wait behind their sequences: the rest of the model's load. */
  readonly behind: number;
}

/** The versions that some of the workers serve. */
export function versionsOf(...workers: readonly (readonly Announcement[])[]): VersionName[] {
  const all = workers.flat().flatMap(({ models }) => models);
  return [...new Map(all.map(({ name, version }) => [`${name}/${version}`, { name, version }])).values()];
}

/** The load of a model has no versions: its rest counts for the version with the most requests. */
export function queueOf({ name, version }: VersionName, { loads, versions }: QueueLook): WaitingVersion {
  const own = versions.filter((one) => one.name === name);
  const size = ({ ready, running, parked }: VersionQueue) => ready + running + parked;
  const largest = own.toSorted((a, b) => size(b) - size(a))[0];
  const found = own.find((one) => one.version === version);
  const none = { name, version, ready: 0, running: 0, parked: 0, oldestMs: 0, levels: [] };
  const rest = (loads.get(`m:${name}`)?.requests ?? 0) - own.reduce((sum, one) => sum + size(one), 0);
  return { ...(found ?? none), behind: found !== undefined && found === largest ? Math.max(0, rest) : 0 };
}
