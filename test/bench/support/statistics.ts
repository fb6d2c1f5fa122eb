/** Percentiles, medians and ratios, and what the report asks of every round. */

export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export function percentiles(values: readonly number[]): Percentiles {
  const sorted = Float64Array.from(values).sort();
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** A figure that the report asks of every round. */
export interface Wanted<Round> {
  readonly name: string;
  /** In words. Without it, `most` says it. */
  readonly goal?: string;
  /** The median may be as much as this. Without it nobody judges the figure. */
  readonly most?: number;
  /** False where what was measured is less than what the goal is about: it can only be missed. */
  readonly canMeet?: boolean;
  /** Undefined where the round did not measure it. */
  readonly of: (round: Partial<Round>) => number | undefined;
}

export function ratio(above: number | undefined, below: number | undefined): number | undefined {
  return above === undefined || below === undefined ? undefined : above / below;
}
