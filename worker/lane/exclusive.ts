/**
 * Lets a suspect run exclusively, with nothing else running in the process. Batches of all lanes
 * share the process, so a suspect waits until no batch runs. A crash during the suspect's run is
 * then the suspect's own fault, and no suspect gets blamed for the crash of another run.
 */
export class Exclusive {
  /** Settles after the last exclusive run in the order of the calls. */
  #alone: Promise<unknown> = Promise.resolve();
  /** Exclusive runs that wait or run. */
  #asked = 0;
  /** Shared runs under way. */
  readonly #company = new Set<Promise<unknown>>();

  /** Runs beside other shared tasks, after all exclusive runs from earlier calls. */
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
   * Runs exclusively, in the order of the calls. The run waits for shared tasks under way, and
   * later shared tasks wait for the run.
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
