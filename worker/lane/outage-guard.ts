/**
 * Says whether the silence of other workers means anything right now. While Redis is away or
 * frozen, no worker hears of another, and every worker looks dead afterwards. This worker's own
 * beats show such a gap. After a gap in their answers, this worker waits a full lease before it
 * declares a worker dead. A short cut of the link is no gap.
 */
export class OutageGuard {
  readonly #leaseMs: number;
  /** The time of the last answer to a beat. */
  #answeredAt: number;
  /** Whether Redis has answered any beat. Time before the first answer is no gap. */
  #hasBegun = false;
  /** The time since which there was no gap. */
  #steadySince: number;

  /** @param now on `performance.now()`'s clock, as are all times here */
  constructor(leaseMs: number, now: number) {
    this.#leaseMs = leaseMs;
    this.#answeredAt = now;
    // A new worker has seen no gap and need not wait. If Redis came back just now, the new worker
    // learns of that from the connections that other workers have noted.
    this.#steadySince = now - leaseMs;
  }

  /** To be called when Redis has answered a beat. */
  answered(now: number): void {
    if (this.#hasBegun && this.#isGap(now)) this.#steadySince = now;
    this.#hasBegun = true;
    this.#answeredAt = now;
  }

  /** The time since the last answer to a beat, in ms. */
  silentFor(now: number): number {
    return now - this.#answeredAt;
  }

  /** Whether silence shows that a worker is dead, because Redis has answered for a whole lease. */
  silenceCounts(now: number): boolean {
    return this.steadyFor(now) >= this.#leaseMs;
  }

  /** How long Redis has answered without a gap, in ms. */
  steadyFor(now: number): number {
    return this.#isGap(now) ? 0 : now - this.#steadySince;
  }

  /**
   * Other workers beat as often as this worker. If this worker could not beat for a whole lease,
   * the silence of other workers may not be their fault.
   */
  #isGap(now: number): boolean {
    return now - this.#answeredAt > this.#leaseMs;
  }
}
