/**
 * Decides between two threads whether a run begins: the model's thread begins it, or the main
 * thread takes it back before. Both threads load this file.
 */

const WAITING = 0;
const BEGUN = 1;
const TAKEN_BACK = 2;

export class Begin {
  /** Seen by both threads. */
  readonly memory: SharedArrayBuffer;
  readonly #state: Int32Array;

  constructor(memory = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#state = new Int32Array(memory);
  }

  /** @returns false if the main thread has taken the run back */
  begin(): boolean {
    return this.#become(BEGUN);
  }

  /** @returns false if the run has begun */
  takeBack(): boolean {
    return this.#become(TAKEN_BACK);
  }

  #become(state: number): boolean {
    return Atomics.compareExchange(this.#state, 0, WAITING, state) === WAITING;
  }
}
