/** Percentiles, medians and ratios, and the figures that the report takes from every round. */

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

/** A figure that the report takes from every round. */
export interface Wanted<Round> {
  readonly name: string;
  /** In words. If absent, `most` is the goal. */
  readonly goal?: string;
  /** The largest median that meets the goal. A figure without this limit has no verdict. */
  readonly most?: number;
  /**
   * False if the measurement is smaller than the goal's: such a figure can miss the goal, but not
   * meet it.
   */
  readonly canMeet?: boolean;
  /** Undefined if the round did not measure the figure. */
  readonly of: (round: Partial<Round>) => number | undefined;
}

export function ratio(above: number | undefined, below: number | undefined): number | undefined {
  return above === undefined || below === undefined ? undefined : above / below;
}
