/**
 * The calls of ensembles that wait for a model. They share batches with the requests of the model's
 * lanes, but no lane has them, so the holdings do not know them.
 */
import type { Held } from "../lane/holdings.js";

export class Calls {
  readonly #waiting = new Set<Held>();

  get waiting(): number {
    return this.#waiting.size;
  }

  add(call: Held): void {
    this.#waiting.add(call);
  }

  /** @param requests of the lanes that wait @returns these and the calls, oldest first */
  among(requests: readonly Held[]): readonly Held[] {
    if (this.#waiting.size === 0) return requests;
    return [...requests, ...this.#waiting].sort((a, b) => a.arrivedAt - b.arrivedAt);
  }

  /** Takes the calls of a batch out, which is to run now. */
  take(batch: readonly Held[]): void {
    for (const held of batch) this.#waiting.delete(held);
  }

  /** Lets the calls of a batch wait again that has not begun. */
  putBack(batch: readonly Held[]): void {
    for (const held of batch) if (held.call !== undefined) this.#waiting.add(held);
  }
}
