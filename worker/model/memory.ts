/**
 * Memory that both ends of a model's thread see. Tensors are written where the other end reads them, and the same memory serves batch after batch:
 * buffers that are made and transferred for each batch are memory that V8 collects, which cost more than half as much as the model itself.
 */
import type { PlacedTensor, PlainTensor } from "./protocol.js";

/** No element is larger, and no vector instruction likes less. */
const ALIGNMENT = 64;
/** What one large batch needed is not kept for ever. */
const KEPT_BYTES = 67_108_864;

/** A tensor whose data is still in pieces, one after the other. */
export interface Pieces extends Omit<PlainTensor, "data"> {
  readonly data: readonly Uint8Array[];
}

/** Memory in use goes round: taken, written, read, given back. */
export class SparedMemory {
  readonly #spare: SharedArrayBuffer[] = [];

  /** Of any size, perhaps none: who writes into it makes another if it is too small. */
  take(): SharedArrayBuffer {
    return this.#spare.pop() ?? new SharedArrayBuffer(0);
  }

  giveBack(memory: SharedArrayBuffer): void {
    if (memory.byteLength <= KEPT_BYTES) this.#spare.push(memory);
  }
}

/** @returns where the tensors lie, in `memory` or, if it is too small, in a new one. */
export function place(
  tensors: readonly Pieces[],
  memory: SharedArrayBuffer,
): { readonly memory: SharedArrayBuffer; readonly placed: PlacedTensor[] } {
  let end = 0;
  const placed = tensors.map(({ name, datatype, shape, data }) => {
    const offset = Math.ceil(end / ALIGNMENT) * ALIGNMENT;
    const bytes = data.reduce((sum, piece) => sum + piece.length, 0);
    end = offset + bytes;
    return { name, datatype, shape, offset, bytes };
  });
  const large = memory.byteLength >= end ? memory : new SharedArrayBuffer(2 ** Math.ceil(Math.log2(end)));
  const into = new Uint8Array(large);
  for (const [i, { data }] of tensors.entries()) {
    let at = placed[i]?.offset ?? 0;
    for (const piece of data) {
      into.set(piece, at);
      at += piece.length;
    }
  }
  return { memory: large, placed };
}

/** A view: it shows what the memory holds by then. */
export function viewOf({ offset, bytes, ...tensor }: PlacedTensor, memory: SharedArrayBuffer): PlainTensor {
  return { ...tensor, data: new Uint8Array(memory, offset, bytes) };
}
