/**
 * When the steps of a load are due. Steps spread over time, and wait while the faults lag behind,
 * so that the last fault meets a busy fleet on a slow machine, too.
 */
export class Pace {
  readonly #begunAt = performance.now();
  readonly #spreadMs: number;
  /** The share of the load that may be under way by now, from 0 to 1. */
  #allowed = 1;
  readonly #waiting = new Set<() => void>();

  constructor(spreadMs: number) {
    this.#spreadMs = spreadMs;
  }

  /** Makes later steps wait for `allow`, however late they are. */
  hold(): void {
    this.#allowed = 0;
  }

  /** Lets this share of the load go. A smaller share than before changes nothing. */
  allow(share: number): void {
    this.#allowed = Math.max(this.#allowed, share);
    for (const wake of this.#waiting) wake();
  }

  /** Resolves when the step at this share of its sequence is due. */
  async reached(share: number): Promise<void> {
    const waitMs = this.#begunAt + share * this.#spreadMs - performance.now();
    if (waitMs > 1) await new Promise((resolve) => setTimeout(resolve, waitMs));
    while (share > this.#allowed) {
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
      });
    }
  }
}
