/**
 * Prints large tensors as JSON apart from the gateway's main thread: a million floats take it half
 * a second, in which nobody else would be answered.
 */
import type { Tensor } from "#shared/frame.js";
import type { ParseThread } from "./parse-thread.js";

/** The elements of tensors as JSON, in UTF-8. */
export type Printed = ReadonlyMap<Tensor, Buffer>;

/** Up to this many bytes are printed in some ten milliseconds at the most. */
const largeBytes = 64 * 1024;

export class TensorPrinter {
  readonly #thread: ParseThread | undefined;

  /** @param thread where it is absent, nothing is printed ahead */
  constructor(thread?: ParseThread) {
    this.#thread = thread;
  }

  /**
   * Prints those that are large, one after the other.
   * @throws InferenceError where one cannot be written as JSON
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
