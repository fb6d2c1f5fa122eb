/**
 * Stacks the tensors of a batch's requests along dimension 0, and splits the model's outputs again.
 */
import type { Tensor } from "#shared/frame.js";
import type { Pieces } from "./memory.js";
import type { PlainTensor } from "./protocol.js";

/**
 * @param parts one tensor of each request; their shapes agree but for dimension 0
 * @param batched false for the single request of a model without a batch dimension
 * @returns the stacked tensor, its data still in one piece for each request
 */
export function stack(parts: readonly Tensor[], batched: boolean): Pieces {
  const [first] = parts;
  if (first === undefined) throw new RangeError("nothing to stack");
  const rows = parts.reduce((sum, { shape }) => sum + (shape[0] ?? 1), 0);
  const shape = batched ? [rows, ...first.shape.slice(1)] : first.shape;
  return { name: first.name, datatype: first.datatype, shape, data: parts.map(({ data }) => data) };
}

/**
 * @param rows how many rows belong to each request, in their order
 * @param batched false for the single request of a model without a batch dimension
 * @returns one tensor for each request; their data are views of the output's
 * @throws RangeError when the output does not have the batch's rows
 */
export function split(
  { name, datatype, shape, data }: PlainTensor,
  rows: readonly number[],
  batched: boolean,
): Tensor[] {
  const whole = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (!batched) return [{ name, datatype, shape, data: whole }];
  const total = rows.reduce((sum, count) => sum + count, 0);
  if (shape[0] !== total) {
    throw new RangeError(`output '${name}' has ${shape[0] ?? "no"} rows, expected ${total}`);
  }
  const perRow = shape.slice(1).reduce((product, dim) => product * dim, 1);
  let offset = 0;
  return rows.map((count) => {
    const end =
      datatype === "BYTES" ? stringsEnd(whole, offset, count * perRow) : offset + (whole.length / total) * count;
    const part = { name, datatype, shape: [count, ...shape.slice(1)], data: whole.subarray(offset, end) };
    offset = end;
    return part;
  });
}

/** Where `count` strings, each after its length, end that begin at `from`. */
function stringsEnd(data: Buffer, from: number, count: number): number {
  let at = from;
  for (let i = 0; i < count; i++) at += 4 + data.readUInt32LE(at);
  return at;
}
