/**
 * Whether a tensor's bytes are those that its datatype and shape want. Tensors are put side by side
 * in one batch, so a tensor of another length would move the rows of all tensors after it.
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
 * Finds the end of some strings of a BYTES tensor, each of which follows its length, a
 * little-endian u32.
 *
 * @param from where the first string begins
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
