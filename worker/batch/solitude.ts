/**
 * Keeps a suspect's run truly alone in its process: batches of all lanes share, a suspect runs when none does. A crash during it is then its own, and cannot be
 * charged to it for another's sake.
 */
export class Solitude {
  /** Settles when the last run alone that was asked for is over. */
  #alone: Promise<unknown> = Promise.resolve();
  #asked = 0;
  readonly #company = new Set<Promise<unknown>>();

  async share<T>(task: () => Promise<T>): Promise<T> {
    while (this.#asked > 0) await this.#alone;
    const run = task();
    this.#company.add(run);
    try {
      return await run;
    } finally {
      this.#company.delete(run);
    }
  }

  /** In the order of the calls; later batches wait, those that run are waited for. */
  alone<T>(task: () => Promise<T>): Promise<T> {
    this.#asked++;
    const result = this.#alone.then(async () => {
      await Promise.allSettled(this.#company);
      return task();
    });
    this.#alone = result.then(
      () => this.#asked--,
      () => this.#asked--,
    );
    return result;
  }
}
