/**
 * Decides which steps of a tensor model run next, from all lanes; the loop only carries out the
 * decision. The rules are those of Triton's dynamic batcher. Requests run in the order of their
 * arrival, and only requests of equal shapes share a batch. A batch runs when it has a preferred
 * size, when no later request can join, or when its oldest request has waited for the configured
 * delay.
 */

import type { Closing } from "../lane/counts.js";
import type { Held } from "../lane/holdings.js";

/** The facts that the plan needs of a step that waits in this worker. */
export type Candidate = Pick<Held, "arrivedAt" | "rows" | "shapeKey" | "sequence" | "expiresAt">;

export interface BatchLimits {
  /** Most rows in a batch; with 0 or 1 every request runs by itself. */
  readonly maxBatchSize: number;
  /** How long the oldest request waits for more requests, in ms. */
  readonly maxDelayMs: number;
  /** Batch sizes to aim at, in ascending order; may be empty. */
  readonly preferred: readonly number[];
  /** A batch of this many rows or more runs at once; undefined if only preferred sizes do. */
  readonly enough?: number;
}

export type BatchPlan<C extends Candidate> =
  /** These steps are past their deadline and must not run. */
  | { readonly kind: "expire"; readonly expired: readonly C[] }
  /** A step whose earlier run ended without a commit runs by itself, before anything else. */
  | { readonly kind: "alone"; readonly suspect: C }
  /**
   * `closed`: no later request can join. `lateMs`: how much longer than the delay the oldest has
   * waited; undefined unless the delay ended the wait.
   */
  | {
      readonly kind: "run";
      readonly batch: readonly C[];
      readonly closed: boolean;
      readonly closedBy: Closing;
      readonly lateMs?: number;
    }
  /** Wait for an arrival, at most until this time on `performance.now()`'s clock. */
  | { readonly kind: "wait"; readonly until: number };

const none: ReadonlySet<string> = new Set();

/**
 * @param waiting oldest first. A request that does not fit ends the batch, and no request overtakes
 * it.
 * @param suspects oldest first
 * @param busy sequences that have a step in a batch under way. Their next steps wait, because two
 * instances of a model run side by side, and all other requests overtake these steps.
 * @param now on `performance.now()`'s clock, like all times here
 */
export function planBatch<C extends Candidate>(
  waiting: readonly C[],
  suspects: readonly C[],
  now: number,
  limits: BatchLimits,
  busy: ReadonlySet<string> = none,
): BatchPlan<C> {
  const expired = [...suspects, ...waiting].filter(({ expiresAt }) => expiresAt <= now);
  if (expired.length > 0) return { kind: "expire", expired };
  const [suspect] = suspects;
  if (suspect !== undefined) return { kind: "alone", suspect };
  const soonest = waiting.reduce((until, { expiresAt }) => Math.min(until, expiresAt), Infinity);
  const free =
    busy.size === 0 ? waiting : waiting.filter(({ sequence: name }) => name === undefined || !busy.has(name));
  const [oldest] = free;
  if (oldest === undefined) return { kind: "wait", until: soonest };

  const { batch, closedBy, preferredPrefix, preferredBy } = gather(free, oldest, limits);
  const closed = closedBy !== undefined;
  const due = oldest.arrivedAt + limits.maxDelayMs;
  const inTime = limits.maxDelayMs === 0 || now < due;
  if (preferredPrefix > 0 && inTime) {
    const isWhole = closed && preferredPrefix === batch.length;
    return { kind: "run", batch: batch.slice(0, preferredPrefix), closed: isWhole, closedBy: preferredBy };
  }
  if (closed) return { kind: "run", batch, closed, closedBy };
  if (now >= due) {
    const late = limits.maxDelayMs > 0 && { lateMs: now - due };
    return { kind: "run", batch, closed, closedBy: "delay", ...late };
  }
  return { kind: "wait", until: Math.min(due, soonest) };
}

/**
 * The next move of a worker whose model's threads have batches already. Behind the batch that runs,
 * one more may be staged there, so that the model never waits for the main thread. Only a closed
 * batch is staged: any other may still grow until a thread is free. A suspect waits until no thread
 * has a batch.
 * @param posted how many batches each thread has, one thread for each instance of the model
 */
export function moveBeside<C extends Candidate>(plan: BatchPlan<C>, posted: readonly number[]): BatchPlan<C> {
  if (plan.kind === "expire" || posted.every((count) => count === 0)) return plan;
  const least = Math.min(...posted);
  if (plan.kind === "run" && (least === 0 || (least === 1 && plan.closed))) return plan;
  return least === 0 && plan.kind === "wait" ? plan : { kind: "wait", until: Infinity };
}

/** @returns the thread for the next batch: the first of those that have the fewest batches */
export function leastBusy(posted: readonly number[]): number {
  return posted.indexOf(Math.min(...posted));
}

interface Gathered<C> {
  readonly batch: C[];
  /**
   * Why later arrivals cannot join: the batch is full, or the next request may not share it.
   * Undefined if they can.
   */
  readonly closedBy: Closing | undefined;
  /**
   * The number of requests in the largest preferred size that the batch has reached; 0 for none.
   */
  readonly preferredPrefix: number;
  /** Which size that prefix has. */
  readonly preferredBy: "preferred" | "enough";
}

function gather<C extends Candidate>(
  waiting: readonly C[],
  oldest: C,
  { maxBatchSize, preferred, enough = Infinity }: BatchLimits,
): Gathered<C> {
  const most = Math.max(1, maxBatchSize);
  const target = preferred.at(-1) ?? most;
  const sequences = new Set<string>();
  const batch: C[] = [];
  let rows = 0;
  let preferredPrefix = 0;
  let preferredBy: Gathered<C>["preferredBy"] = "preferred";
  const gathered = (closedBy: Closing | undefined) => ({ batch, closedBy, preferredPrefix, preferredBy });
  const full = most === 1 ? "unbatched" : "full";
  for (const candidate of waiting) {
    if (batch.length > 0) {
      if (rows + candidate.rows > most) return gathered(full);
      if (candidate.shapeKey !== oldest.shapeKey) return gathered("shape");
      const { sequence } = candidate;
      if (sequence !== undefined && sequences.has(sequence)) return gathered("sequence");
    }
    batch.push(candidate);
    rows += candidate.rows;
    if (candidate.sequence !== undefined) sequences.add(candidate.sequence);
    if (rows >= enough || preferred.includes(rows)) {
      preferredPrefix = batch.length;
      preferredBy = preferred.includes(rows) ? "preferred" : "enough";
    }
  }
  if (rows >= most) return gathered(full);
  return gathered(rows >= target ? "preferred" : undefined);
}
