/**
 * Memory that the main thread and a model's thread share; both load this file. Each thread writes
 * tensors in memory that the other thread reads, and the same memory serves batch after batch. With
 * new buffers for each batch, V8 would have to collect the old buffers. That took more than half as
 * much time as the model itself.
 */
import type { PlacedTensor, PlainTensor } from "./protocol.js";

/** Each tensor begins at a multiple of this many bytes. No element or vector register is larger. */
const ALIGNMENT = 64;
/** A memory of more bytes than this, from a large batch, does not stay for the next batches. */
const KEPT_BYTES = 67_108_864;

/** A tensor whose data is still in pieces, one after the other. */
export interface Pieces extends Omit<PlainTensor, "data"> {
  readonly data: readonly Uint8Array[];
  /**
   * Present if the batch is not the first axis. The pieces then interleave: piece i has `rows[i]`
   * rows, and each row has `outer` parts. The first parts of all rows come first, then all second
   * parts, and so on.
   */
  readonly woven?: { readonly rows: readonly number[]; readonly outer: number };
}

/** Memory for later runs. A run takes a memory, writes it, reads it, and gives it back. */
export class SparedMemory {
  readonly #spare: SharedArrayBuffer[] = [];

  /** Memory of any size, perhaps 0. If it is too small, `place` makes a larger memory. */
  take(): SharedArrayBuffer {
    return this.#spare.pop() ?? new SharedArrayBuffer(0);
  }

  giveBack(memory: SharedArrayBuffer): void {
    if (memory.byteLength <= KEPT_BYTES) this.#spare.push(memory);
  }
}

/**
 * Copies tensors into `memory` or, if that is too small, into a new memory.
 *
 * @returns the memory, and the place of each tensor in it
 */
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
  for (const [i, { data, woven }] of tensors.entries()) {
    let at = placed[i]?.offset ?? 0;
    if (woven !== undefined) {
      weave(data, woven, into, at);
      continue;
    }
    for (const piece of data) {
      into.set(piece, at);
      at += piece.length;
    }
  }
  return { memory: large, placed };
}

function weave(data: Pieces["data"], { rows, outer }: Required<Pieces>["woven"], into: Uint8Array, at: number): void {
  const total = rows.reduce((sum, count) => sum + count, 0);
  let row = 0;
  for (const [i, piece] of data.entries()) {
    const count = rows[i] ?? 0;
    // A shape such as [1, 2^40, 0] would copy nothing, 2^40 times.
    if (piece.length === 0) continue;
    const rowBytes = piece.length / count;
    const size = rowBytes / outer;
    for (let j = 0; j < count; j++, row++) {
      copyStrided(piece, j * rowBytes, size, into, at + row * size, size * total, size, outer);
    }
  }
}

/** For fewer bytes than this, a copy byte by byte is quicker than a call that makes a view. */
const SHORT_COPY = 24;

/**
 * Copies `count` runs of `size` bytes. Each stride is the distance between the starts of two runs.
 */
export function copyStrided(
  from: Uint8Array,
  fromAt: number,
  fromStride: number,
  into: Uint8Array,
  intoAt: number,
  intoStride: number,
  size: number,
  count: number,
): void {
  for (let i = 0, at = fromAt, to = intoAt; i < count; i++, at += fromStride, to += intoStride) {
    if (size > SHORT_COPY) into.set(from.subarray(at, at + size), to);
    else for (let byte = 0; byte < size; byte++) into[to + byte] = from[at + byte] as number;
  }
}

/** A tensor as a view of the memory. Its data changes with the next run that writes there. */
export function viewOf({ offset, bytes, ...tensor }: PlacedTensor, memory: SharedArrayBuffer): PlainTensor {
  return { ...tensor, data: new Uint8Array(memory, offset, bytes) };
}
