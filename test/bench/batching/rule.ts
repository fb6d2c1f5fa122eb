/**
 * Triton's rule on given arrivals, in simulated time: one queue before all instances, whose batches
 * `planBatch` chooses. No message takes time here, so the result is the best that a fleet can do.
 */
import { planBatch, type BatchLimits } from "../../../worker/tensors/plan.js";

export interface ByRule {
  /** How many batches ran, by size. */
  readonly sizes: ReadonlyMap<number, number>;
  /** From the arrival of each request to the end of its run, in ms. */
  readonly latencies: readonly number[];
}

/**
 * @param arrivals times of requests with one row, in ms, ascending
 * @param instances how many batches run at once
 * @param runMs the duration of each run
 */
export function byRule(arrivals: readonly number[], limits: BatchLimits, instances: number, runMs: number): ByRule {
  const queue = arrivals.map((arrivedAt) => ({
    arrivedAt,
    rows: 1,
    shapeKey: "",
    sequence: undefined,
    expiresAt: Infinity,
  }));
  const freeAt = Array<number>(instances).fill(0);
  const sizes = new Map<number, number>();
  const latencies: number[] = [];
  let begun = 0;
  let now = 0;
  while (begun < queue.length) {
    const next = queue.slice(begun).find(({ arrivedAt }) => arrivedAt > now)?.arrivedAt ?? Infinity;
    const free = Math.min(...freeAt);
    if (free > now) {
      now = free;
      continue;
    }
    const waiting = queue.slice(begun).filter(({ arrivedAt }) => arrivedAt <= now);
    const plan = planBatch(waiting, [], now, limits);
    if (plan.kind !== "run") {
      now = plan.kind === "wait" ? Math.min(plan.until, next) : next;
      continue;
    }
    const { length } = plan.batch;
    begun += length;
    sizes.set(length, (sizes.get(length) ?? 0) + 1);
    freeAt[freeAt.indexOf(free)] = now + runMs;
    latencies.push(...plan.batch.map(({ arrivedAt }) => now + runMs - arrivedAt));
  }
  return { sizes, latencies };
}
