/**
 * Caches of keys and values as blocks of rows. Rows of different lengths align at the block's right
 * edge. To the left of a short row is padding, which the attention mask hides. Past and present
 * tensors of a decoder have the same layout, `[rows, heads, capacity, dim]`, so blocks need no copy
 * on their way in and out.
 */

/** One cache tensor of a decoder: the keys or the values of one layer. */
export interface KvTensor {
  /** Names of the graph's input and output. */
  readonly past: string;
  readonly present: string;
  readonly heads: number;
  readonly dim: number;
}

export interface KvLayout {
  readonly tensors: readonly KvTensor[];
  readonly datatype: "FP32" | "FP16";
}

/** FP32 as numbers, FP16 as the bits of each number. */
export type KvArray = Float32Array | Uint16Array;

/** The caches of some rows. */
export interface KvBlock {
  readonly rows: number;
  /** Positions of each row, padding included. */
  readonly capacity: number;
  /** One per tensor of the layout, each `[rows, heads, capacity, dim]`. */
  readonly arrays: readonly KvArray[];
}

/** Positions `from` to `from + length` of one row of a block. */
export interface KvSlice {
  readonly block: KvBlock;
  readonly row: number;
  readonly from: number;
  readonly length: number;
}

/** @returns the bytes of one position of one row in all tensors together */
export function bytesPerPosition({ tensors, datatype }: KvLayout): number {
  const elements = tensors.reduce((sum, { heads, dim }) => sum + heads * dim, 0);
  return elements * (datatype === "FP32" ? 4 : 2);
}

/** @returns the bytes of all tensors of a block */
export function blockBytes(layout: KvLayout, { rows, capacity }: KvBlock): number {
  return rows * capacity * bytesPerPosition(layout);
}

/** @returns the last `length` positions of a row */
export function rightSlice(block: KvBlock, row: number, length: number): KvSlice {
  return { block, row, from: block.capacity - length, length };
}

/**
 * @returns a new block with these rows in this order, as wide as the longest row; each row ends at
 *   the right edge, with zeros to its left
 * @throws RangeError for a slice that reaches beyond its row, into another row's caches
 */
export function gather(layout: KvLayout, slices: readonly KvSlice[]): KvBlock {
  for (const { block, row, from, length } of slices) {
    if (row >= 0 && row < block.rows && from >= 0 && length >= 0 && from + length <= block.capacity) continue;
    throw new RangeError(`positions ${from} to ${from + length} are not all of row ${row}`);
  }
  const capacity = Math.max(0, ...slices.map(({ length }) => length));
  const arrays = layout.tensors.map(({ heads, dim }, t) => {
    const size = slices.length * heads * capacity * dim;
    const target = layout.datatype === "FP32" ? new Float32Array(size) : new Uint16Array(size);
    for (const [row, slice] of slices.entries()) {
      const source = slice.block.arrays[t];
      if (source?.length !== slice.block.rows * heads * slice.block.capacity * dim) {
        throw new RangeError("a block has another tensor than its layout");
      }
      for (let head = 0; head < heads; head++) {
        const start = ((slice.row * heads + head) * slice.block.capacity + slice.from) * dim;
        const end = start + slice.length * dim;
        target.set(source.subarray(start, end), ((row * heads + head) * capacity + capacity - slice.length) * dim);
      }
    }
    return target;
  });
  return { rows: slices.length, capacity, arrays };
}

/**
 * Memory for a block that grows: sufficient for every size up to the original rows and capacity.
 */
export class KvMemory {
  readonly #layout: KvLayout;
  readonly #buffers: readonly ArrayBuffer[];
  /** Positions of all rows together. */
  readonly #positions: number;

  constructor(layout: KvLayout, rows: number, capacity: number) {
    this.#layout = layout;
    this.#positions = rows * capacity;
    const elementBytes = layout.datatype === "FP32" ? 4 : 2;
    this.#buffers = layout.tensors.map(
      ({ heads, dim }) => new ArrayBuffer(this.#positions * heads * dim * elementBytes),
    );
  }

  fits(rows: number, capacity: number): boolean {
    return rows * capacity <= this.#positions;
  }

  /**
   * @returns arrays of the exact size for one block, one per tensor; every call returns the same
   *   memory
   */
  arrays(rows: number, capacity: number): KvArray[] {
    return this.#layout.tensors.map(({ heads, dim }, t) => {
      const buffer = this.#buffers[t] ?? new ArrayBuffer(0);
      const length = rows * capacity * heads * dim;
      return this.#layout.datatype === "FP32"
        ? new Float32Array(buffer, 0, length)
        : new Uint16Array(buffer, 0, length);
    });
  }
}
