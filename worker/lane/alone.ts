/**
 * A request that runs while nothing else runs (`exclusive.ts`), though several models work for it.
 * It may go on beside others once it has come further than at its last worker.
 */
export class Alone {
  readonly #running = new Set<Promise<unknown>>();
  #isOver = false;
  #progressed: () => void = () => undefined;
  /** Resolves once the request may go on beside others. */
  readonly progress = new Promise<void>((resolve) => (this.#progressed = resolve));

  /** Whether the request must run while nothing else runs. */
  get isAlone(): boolean {
    return !this.#isOver;
  }

  /** From now on the request runs beside others. */
  end(): void {
    this.#isOver = true;
    this.#progressed();
  }

  /** Runs a model for the request. */
  async during<T>(run: () => Promise<T>): Promise<T> {
    const running = run();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  /** Resolves when no model runs for the request alone. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }
}
