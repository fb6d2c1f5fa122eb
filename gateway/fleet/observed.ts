/** The observer's figures: samples for its page of metrics, and a point of the history. Pure. */
import type { Announcement } from "#shared/contract/announcement.js";
import type { Cells, Sample } from "#shared/metrics/cells.js";
import { observed } from "#shared/metrics/observed-families.js";
import type { QueueLimits } from "#shared/queue/admission/limits.js";
import type { Measured, Point } from "#shared/queue/admission/history.js";
import { addedSums, responseSums, timeBounds } from "#shared/queue/pieces/report.js";
import type { QueueLook, VersionQueue } from "./queue-look.js";
import type { VersionName, VersionTotals } from "./totals.js";

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
}

type ObservedName = keyof typeof observed;

const observedNames = Object.keys(observed) as ObservedName[];

/** The samples of every family of the observer. */
function samplesOf(cells: Cells, seen: Observed): Readonly<Record<ObservedName, readonly Sample[]>> {
  const { look, workers, lapsed, unservedBuckets, limits, processes } = seen;
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
  const isSequence = (name: string) =>
    [...workers, ...lapsed].some(({ models: served }) =>
      served.some((model) => model.name === name && model.sequence !== undefined),
    );
  return {
    nv_inference_pending_request_count: ofVersions(({ ready, parked, behind }) => [[{}, ready + parked + behind]]),
    baton_queue_requests: ofVersions(({ ready, parked, behind, running }) => [
      [{ state: "ready" }, ready],
      [{ state: "parked" }, parked],
      [{ state: "behind_sequence" }, behind],
      [{ state: "running" }, running],
    ]),
    baton_queue_oldest_seconds: largest(ofVersions(({ oldestMs }) => [[{}, oldestMs / 1_000]])),
    baton_queue_bytes: ofModels((model) => load(`m:${model}`).bytes),
    baton_queue_limit_ratio: [
      ...ofModels((model) => ratio(load(`m:${model}`).requests, limits.queue), { limit: "requests" }),
      ...ofModels((model) => ratio(load(`m:${model}`).bytes, limits.queueBytes), { limit: "bytes" }),
      ...ofModels((model) => ratio(load(`s:${model}`).requests, limits.liveSequences), { limit: "sequences" }),
    ],
    baton_sequences: ofModels((model) => (isSequence(model) ? load(`s:${model}`).requests : undefined), {
      state: "live",
    }),
    baton_delayed_jobs: one(load("later").requests),
    baton_results_bytes: one(load("kept").bytes),
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

interface WaitingVersion extends VersionQueue {
  /** Requests that wait behind their sequences: the rest of the model's load. */
  readonly behind: number;
}

/** The versions that some of the workers serve. */
export function versionsOf(...workers: readonly (readonly Announcement[])[]): VersionName[] {
  const all = workers.flat().flatMap(({ models }) => models);
  return [...new Map(all.map(({ name, version }) => [`${name}/${version}`, { name, version }])).values()];
}

/** The load of a model has no versions: its rest counts for the version with the most requests. */
function queueOf({ name, version }: VersionName, { loads, versions }: QueueLook): WaitingVersion {
  const own = versions.filter((one) => one.name === name);
  const size = ({ ready, running, parked }: VersionQueue) => ready + running + parked;
  const largest = own.toSorted((a, b) => size(b) - size(a))[0];
  const found = own.find((one) => one.version === version);
  const none = { name, version, ready: 0, running: 0, parked: 0, oldestMs: 0 };
  const rest = (loads.get(`m:${name}`)?.requests ?? 0) - own.reduce((sum, one) => sum + size(one), 0);
  return { ...(found ?? none), behind: found !== undefined && found === largest ? Math.max(0, rest) : 0 };
}

/** The sums of a model over its versions, as far as a point needs them. */
export interface ModelSums {
  readonly success: number;
  readonly fail: number;
  readonly tokens: number;
  readonly runs: number;
  readonly rowsOfRuns: number;
  readonly runUs: number;
  readonly times: readonly number[];
}

const noSums: ModelSums = { success: 0, fail: 0, tokens: 0, runs: 0, rowsOfRuns: 0, runUs: 0, times: [] };

/** Adds up the versions of each model. */
export function sumsByModel(
  versions: readonly VersionName[],
  totals: (version: VersionName) => VersionTotals,
): ReadonlyMap<string, ModelSums> {
  const sums = new Map<string, ModelSums>();
  for (const version of versions) {
    const { of, runs, responses, times } = totals(version);
    const before = sums.get(version.name) ?? noSums;
    const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);
    sums.set(version.name, {
      success: before.success + of.success,
      fail: before.fail + of.fail,
      tokens: before.tokens + sum(responses.map(([, counts]) => sum(counts.filter(isSuccess)))),
      runs: before.runs + of.runs,
      rowsOfRuns: before.rowsOfRuns + sum(runs.map(([rows, [count = 0]]) => rows * count)),
      runUs: before.runUs + sum(runs.map(([, counts]) => counts[2] ?? 0)),
      times: addedSums(before.times, times),
    });
  }
  return sums;
}

function isSuccess(_: number, place: number): boolean {
  return place % responseSums.length === 0;
}

/** A time for which the observer knows the sums. */
export interface SumsAt {
  readonly sums: ReadonlyMap<string, ModelSums>;
  /** On `World.now()`'s clock. */
  readonly at: number;
}

/**
 * @param before the sums of the round before; undefined if this observer has just begun
 * @returns the point of this round
 */
export function pointOf(seen: Observed, before: SumsAt | undefined, now: SumsAt): Point["models"] {
  const { look, workers, lapsed } = seen;
  const versions = versionsOf(workers, lapsed).map((version) => queueOf(version, look));
  return Object.fromEntries(
    [...new Set(versionsOf(workers).map(({ name }) => name))].map((model): [string, Measured] => {
      const sums = now.sums.get(model) ?? noSums;
      const own = versions.filter(({ name }) => name === model);
      const queued = own.reduce((sum, { ready, parked, behind }) => sum + ready + parked + behind, 0);
      const oldestMs = Math.max(0, ...own.map((one) => Math.round(one.oldestMs)));
      const live = look.loads.get(`s:${model}`)?.requests ?? 0;
      const serving = workers.filter(({ models }) => models.some(({ name }) => name === model)).length;
      const [steps, errors, ...rest] =
        before === undefined
          ? [null, null, null, null, null, null, null]
          : changesOf(before.sums.get(model) ?? noSums, sums, (now.at - before.at) * serving);
      return [model, [steps ?? null, errors ?? null, queued, oldestMs, live, ...rest]];
    }),
  );
}

/** Steps, errors, tokens, p50, p99, rows of a batch, and how busy the workers were. */
function changesOf(before: ModelSums, now: ModelSums, workerMs: number): (number | null)[] {
  // A sum may fall if Redis loses what it had acknowledged.
  const more = (of: Exclude<keyof ModelSums, "times">) => Math.max(0, now[of] - before[of]);
  const times = now.times.map((count, i) => Math.max(0, count - (before.times[i] ?? 0)));
  const [runs, busyMs] = [more("runs"), more("runUs") / 1_000];
  return [
    more("success"),
    more("fail"),
    more("tokens"),
    quantile(times, 0.5),
    quantile(times, 0.99),
    runs === 0 ? null : rounded(more("rowsOfRuns") / runs),
    workerMs <= 0 ? null : rounded(Math.min(1, busyMs / workerMs)),
  ];
}

/** @returns the time below which this part of the requests was, in ms; null without requests */
function quantile(times: readonly number[], part: number): number | null {
  const all = times.reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  let below = 0;
  for (const [i, count] of times.entries()) {
    if (below + count >= part * all && count > 0) {
      const [from = 0, to = timeBounds.at(-1) ?? 0] = [timeBounds[i - 1], timeBounds[i]];
      return rounded(from + ((part * all - below) / count) * (to - from));
    }
    below += count;
  }
  return null;
}

function rounded(value: number): number {
  return Number(value.toPrecision(3));
}
