/** A point of the history of the fleet, from two rounds of the observer. Pure. */
import type { Measured, Point } from "#shared/queue/admission/history.js";
import { addedSums, responseSums, timeBounds } from "#shared/queue/pieces/report.js";
import { queueOf, versionsOf, type Observed } from "./observed.js";
import type { VersionName, VersionTotals } from "./totals.js";

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
