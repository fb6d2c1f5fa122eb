/**
 * The calls of ensembles that wait for a model or run on it. They share batches with the requests
 * of the model's lanes, but no lane has them, so the holdings do not know them.
 */
import type { Held } from "../lane/holdings.js";

export class Calls {
  readonly #waiting = new Set<Held>();
  #running = 0;

  get waiting(): number {
    return this.#waiting.size;
  }

  /** The number of calls, running ones included. */
  get size(): number {
    return this.#waiting.size + this.#running;
  }

  add(call: Held): void {
    this.#waiting.add(call);
  }

  /** @param requests of the lanes that wait @returns these and the calls, oldest first */
  among(requests: readonly Held[]): readonly Held[] {
    if (this.#waiting.size === 0) return requests;
    return [...requests, ...this.#waiting].sort((a, b) => a.arrivedAt - b.arrivedAt);
  }

  /** Moves the calls of a batch from waiting to running. */
  take(batch: readonly Held[]): void {
    for (const held of batch) if (this.#waiting.delete(held)) this.#running++;
  }

  /** Lets the calls of a batch wait again that has not begun. */
  putBack(batch: readonly Held[]): void {
    this.left(batch);
    for (const held of batch) if (held.call !== undefined) this.#waiting.add(held);
  }

  /** Forgets the calls of a batch that ran. */
  left(batch: readonly Held[]): void {
    this.#running -= batch.filter(({ call }) => call !== undefined).length;
  }
}
