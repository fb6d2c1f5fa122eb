/**
 * The clock of figures, on `performance.now()`'s clock. No decision depends on it, so a simulation,
 * whose world has a clock of its own, lets it be real.
 */
export function stopwatch(): number {
  return performance.now();
}
