/**
 * Whether leases mean anything right now. While Redis was away or frozen nobody could renew, and every lease looks expired; this worker's own renewals tell: after
 * a gap in them, a full lease goes by before it takes anything over. A short cut of the link is no such gap.
 */
export class Steadiness {
  readonly #leaseMs: number;
  #renewedAt: number;
  #steadySince: number;

  constructor(leaseMs: number, now: number) {
    this.#leaseMs = leaseMs;
    this.#renewedAt = now;
    // A new worker has missed nothing: should Redis be just back, it takes over steps that still run, which costs work and no answer.
    this.#steadySince = now - leaseMs;
  }

  /** A renewal was answered. */
  renewed(now: number): void {
    if (this.#isGap(now)) this.#steadySince = now;
    this.#renewedAt = now;
  }

  /** Since the last answered renewal, in ms. */
  silentFor(now: number): number {
    return now - this.#renewedAt;
  }

  leasesCount(now: number): boolean {
    return this.steadyFor(now) >= this.#leaseMs;
  }

  /** How long Redis has been there without a gap, in ms. */
  steadyFor(now: number): number {
    return this.#isGap(now) ? 0 : now - this.#steadySince;
  }

  /** Others renew as often as we do: when we could not for a lease, theirs may have run out without their fault. */
  #isGap(now: number): boolean {
    return now - this.#renewedAt > this.#leaseMs;
  }
}
