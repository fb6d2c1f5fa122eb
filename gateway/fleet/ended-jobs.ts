/**
 * How many jobs have ended, as counters of this observer. Redis counts the ends for ever, in each
 * bucket and by model. A counter of Prometheus may not fall, because its rise back would count the
 * same ends again. Pure.
 */
import { OTHER } from "#shared/metrics/cells.js";
import type { LoadSum } from "#shared/queue/pieces/load.js";

/** The states in which jobs end. */
const states = ["completed", "failed", "cancelled", "expired"] as const;

export interface EndedJobs {
  /** `OTHER` for all models together that are gone. */
  readonly model: string;
  readonly state: string;
  readonly count: number;
}

/** By the field of the counts; see `Load`. */
type Counts = ReadonlyMap<string, number>;

export class EndCounters {
  #before: Counts | undefined;
  #shown: readonly EndedJobs[] = [];

  /**
   * Adds the ends that have come since the call before.
   * @param loads of all buckets: without a part of them the sums would fall
   * @param models that workers serve or have served lately. A model that goes takes its counters
   *   with it, and its earlier ends do not make those of `OTHER` jump
   */
  take(loads: ReadonlyMap<string, LoadSum>, models: ReadonlySet<string>): readonly EndedJobs[] {
    const now = new Map(
      [...loads].flatMap(([field, { requests }]) => (field.startsWith("e:") ? [[field, requests] as const] : [])),
    );
    const { before = now, shown } = { before: this.#before, shown: this.#shown };
    const counterOf = (model: string, state: string, sumOf: (counts: Counts) => number): EndedJobs => {
      const was = shown.find((one) => one.model === model && one.state === state)?.count;
      const sum = sumOf(now);
      return { model, state, count: was === undefined ? sum : was + Math.max(0, sum - sumOf(before)) };
    };
    const own = [...models].flatMap((model) =>
      states.map((state) => counterOf(model, state, (counts) => counts.get(`e:${state}:${model}`) ?? 0)),
    );
    const others = states.map((state) => counterOf(OTHER, state, (counts) => sumOfOthers(counts, state, models)));
    this.#before = now;
    this.#shown = [...own, ...others];
    return this.#shown;
  }
}

/** Upkeep moves the ends of models that are gone to one field, which does not change this sum. */
function sumOfOthers(counts: Counts, state: string, models: ReadonlySet<string>): number {
  const prefix = `e:${state}:`;
  return [...counts].reduce(
    (sum, [field, count]) => (field.startsWith(prefix) && !models.has(field.slice(prefix.length)) ? sum + count : sum),
    0,
  );
}
