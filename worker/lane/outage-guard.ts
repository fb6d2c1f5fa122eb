/**
 * Tells whether silence means anything right now. While Redis is away or frozen nobody can be heard
 * of, and every worker looks dead afterwards. This worker's own beats tell of it: after a gap in
 * their answers, a full lease goes by before it takes anybody for dead. A short cut of the link is
 * no such gap.
 */
export class OutageGuard {
  readonly #leaseMs: number;
  /** When a beat was last answered. */
  #answeredAt: number;
  /** Whether any beat was answered: what came before the first one is no gap. */
  #hasBegun = false;
  /** Since when there was no gap. */
  #steadySince: number;

  /** @param now this time and all others are on `performance.now()`'s clock */
  constructor(leaseMs: number, now: number) {
    this.#leaseMs = leaseMs;
    this.#answeredAt = now;
    // A new worker has seen no gap and need not wait. Should Redis be just back, the connections
    // that others noted tell it so.
    this.#steadySince = now - leaseMs;
  }

  /** A beat was answered. */
  answered(now: number): void {
    if (this.#hasBegun && this.#isGap(now)) this.#steadySince = now;
    this.#hasBegun = true;
    this.#answeredAt = now;
  }

  /** How long ago a beat was last answered, in ms. */
  silentFor(now: number): number {
    return now - this.#answeredAt;
  }

  /** Whether a worker that is silent has itself to blame for it. */
  silenceCounts(now: number): boolean {
    return this.steadyFor(now) >= this.#leaseMs;
  }

  /** How long Redis has been there without a gap, in ms. */
  steadyFor(now: number): number {
    return this.#isGap(now) ? 0 : now - this.#steadySince;
  }

  /**
   * Other workers beat as often as this one. When it could not for a whole lease, they may be
   * silent without their fault.
   */
  #isGap(now: number): boolean {
    return now - this.#answeredAt > this.#leaseMs;
  }
}
