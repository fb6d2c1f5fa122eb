/**
 * Prints large tensors as JSON apart from the gateway's main thread. A million floats would block
 * the main thread, and so all clients, for half a second.
 */
import type { Tensor } from "#shared/frame.js";
import type { ParseThread } from "./parse-thread.js";

/** The elements of tensors as JSON, in UTF-8. */
export type Printed = ReadonlyMap<Tensor, Buffer>;

/** Up to this many bytes take some ten milliseconds to print at the most. */
const largeBytes = 64 * 1024;

export class TensorPrinter {
  readonly #thread: ParseThread | undefined;

  /** @param thread if absent, `printLarge` prints nothing */
  constructor(thread?: ParseThread) {
    this.#thread = thread;
  }

  /**
   * Prints the large tensors, one after the other.
   * @throws InferenceError if a tensor has no form in JSON
   */
  async printLarge(tensors: readonly Tensor[]): Promise<Printed> {
    const printed = new Map<Tensor, Buffer>();
    if (this.#thread === undefined) return printed;
    for (const tensor of tensors) {
      if (tensor.data.length > largeBytes) printed.set(tensor, await this.#thread.print(tensor));
    }
    return printed;
  }
}
