/**
 * Lets a suspect run exclusively, with nothing else running in its process. Batches of all lanes
 * share the process; a suspect runs when none of them does. So a crash during its run is its own
 * fault, and it is never blamed for the crash of another run.
 */
export class Exclusive {
  /** Settles when the last exclusive run that was asked for is over. */
  #alone: Promise<unknown> = Promise.resolve();
  /** Exclusive runs that were asked for and are not over. */
  #asked = 0;
  /** Shared runs under way. */
  readonly #company = new Set<Promise<unknown>>();

  /** Runs beside other shared tasks, after all exclusive ones that were asked for before. */
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

  /**
   * Runs by itself, in the order of the calls. Shared tasks that run are waited for, later ones
   * wait.
   */
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
