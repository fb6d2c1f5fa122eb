/**
 * Whether a tensor's bytes fit the tensor's datatype and shape. A batch places tensors side by
 * side, so a tensor of another length would move the rows of all tensors after it.
 */
import { datatypeBytes, elementCount, type Datatype } from "./datatype.js";

interface Shaped {
  readonly datatype: Datatype;
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

export function hasItsBytes({ datatype, shape, data }: Shaped): boolean {
  const count = elementCount(shape);
  return datatype === "BYTES"
    ? stringsEnd(data, 0, count) === data.length
    : data.length === count * datatypeBytes[datatype];
}

/**
 * Finds the end of a number of strings in a BYTES tensor. Each string follows its length, a
 * little-endian u32.
 *
 * @param from offset of the first string
 * @returns undefined if the data end before the last string does
 */
export function stringsEnd(data: Uint8Array, from: number, count: number): number | undefined {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let at = from;
  for (let i = 0; i < count; i++) {
    if (at + 4 > data.length) return undefined;
    at += 4 + view.getUint32(at, true);
  }
  return at <= data.length ? at : undefined;
}

/**
 * Returns the arguments for a typed array over `data`. A typed array needs aligned bytes, and a
 * tensor may begin anywhere in a frame, so this copies unaligned bytes once.
 * @param size of an element, in bytes
 */
export function spanOf(data: Uint8Array, size: number): [ArrayBufferLike, number, number] {
  const view = data.byteOffset % size === 0 ? data : new Uint8Array(data);
  return [view.buffer, view.byteOffset, Math.floor(data.length / size)];
}
