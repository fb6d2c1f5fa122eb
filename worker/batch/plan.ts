/** Decides what a lane does next; the loop only carries it out. Rules: spec/dynamic-batching.md sections 3 and 4. */

/** What the plan needs to know of a step that waits in this worker's hands. */
export interface Candidate {
  /** When this worker got it, ms on `performance.now()`'s clock. */
  readonly arrivedAt: number;
  /** Size of the request's own batch dimension; 1 without one. */
  readonly rows: number;
  /** Equal for requests that may share a batch. */
  readonly shapeKey: string;
  readonly sequence: string | undefined;
  /** When it must no longer run, same clock. */
  readonly expiresAt: number;
}

export interface BatchLimits {
  /** Most rows in a batch; 0 or 1: every request runs by itself. */
  readonly maxBatchSize: number;
  /** How long the oldest candidate waits for company. */
  readonly maxDelayMs: number;
  /** Batch sizes to aim at, ascending; may be empty. */
  readonly preferred: readonly number[];
  /** Rows from which on a batch is good to go, of any size; undefined: only preferred sizes are. */
  readonly enough?: number;
}

export type BatchPlan<C extends Candidate> =
  | { readonly kind: "expire"; readonly expired: readonly C[] }
  /** Steps whose earlier attempt ended without a commit run by themselves, before anything else. */
  | { readonly kind: "alone"; readonly suspect: C }
  | { readonly kind: "run"; readonly batch: readonly C[] }
  | { readonly kind: "wait"; readonly until: number };

/** @param waiting oldest first; strict FIFO: a request that does not fit ends the batch, none overtakes it. */
export function planBatch<C extends Candidate>(
  waiting: readonly C[],
  suspects: readonly C[],
  now: number,
  limits: BatchLimits,
): BatchPlan<C> {
  const expired = [...suspects, ...waiting].filter(({ expiresAt }) => expiresAt <= now);
  if (expired.length > 0) return { kind: "expire", expired };
  const [suspect] = suspects;
  if (suspect !== undefined) return { kind: "alone", suspect };
  const [oldest] = waiting;
  if (oldest === undefined) return { kind: "wait", until: Infinity };

  const { batch, closed, preferredPrefix } = gather(waiting, oldest, limits);
  const due = oldest.arrivedAt + limits.maxDelayMs;
  const inTime = limits.maxDelayMs === 0 || now < due;
  if (preferredPrefix > 0 && inTime) return { kind: "run", batch: batch.slice(0, preferredPrefix) };
  if (closed || now >= due) return { kind: "run", batch };
  return { kind: "wait", until: Math.min(due, ...waiting.map(({ expiresAt }) => expiresAt)) };
}

interface Gathered<C> {
  readonly batch: C[];
  /** No later arrival can join: it is full, or what stands next may not share. */
  readonly closed: boolean;
  /** How many of `batch` make up the largest preferred size that was hit; 0 for none. */
  readonly preferredPrefix: number;
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
  for (const candidate of waiting) {
    const fits =
      batch.length === 0 ||
      (rows + candidate.rows <= most &&
        candidate.shapeKey === oldest.shapeKey &&
        (candidate.sequence === undefined || !sequences.has(candidate.sequence)));
    if (!fits) return { batch, closed: true, preferredPrefix };
    batch.push(candidate);
    rows += candidate.rows;
    if (candidate.sequence !== undefined) sequences.add(candidate.sequence);
    if (rows >= enough || preferred.includes(rows)) preferredPrefix = batch.length;
  }
  return { batch, closed: rows >= Math.min(most, target), preferredPrefix };
}
