/**
 * Stacks the tensors of a batch's requests along the graph's batch axis, and splits the model's
 * outputs again. Outside the graph the batch is always the first axis: in requests, in answers and
 * in states, tensors are `[batch, ...dims]`.
 */
import type { Tensor } from "#shared/frame.js";
import { elementCount } from "#shared/model/datatype.js";
import { hasItsBytes, stringsEnd } from "#shared/model/tensor-bytes.js";
import { copyStrided, type Pieces } from "./memory.js";
import type { PlainTensor } from "./protocol.js";

/** The graph's form of a tensor that clients know as `[batch, ...dims]`. */
export interface Layout {
  /** The graph's batch axis. */
  readonly axis: number;
  /** Whether the graph has no other axis, although the configuration must name one: dims [1]. */
  readonly bare: boolean;
}

/**
 * Checks each part by itself, because the runtime sees only the sum of all rows. A part with a
 * surplus row beside a part that lacks a row would pass. Each request between the two would then
 * get its neighbour's rows.
 *
 * @param parts one tensor of each request; their shapes agree except for the batch
 * @param rows how many rows belong to each request, in their order
 * @param layout undefined for a tensor that all requests share, and for the single request of a
 * model without a batch axis
 * @returns the stacked tensor, its data still in one piece for each request
 * @throws RangeError if a part does not fit the other parts and its rows
 */
export function stack(parts: readonly Tensor[], rows: readonly number[], layout: Layout | undefined): Pieces {
  const [first] = parts;
  if (first === undefined || parts.length !== rows.length) throw new RangeError("a part is needed for each request");
  const { name, datatype } = first;
  for (const [i, part] of parts.entries()) {
    if (isLike(first, part, layout === undefined ? first.shape[0] : rows[i]) && hasItsBytes(part)) continue;
    throw new RangeError(`${describe(part)} of request ${i + 1} does not fit its batch`);
  }
  if (layout === undefined) return { name, datatype, shape: first.shape, data: [first.data] };
  const own = layout.bare ? [] : first.shape.slice(1);
  const before = own.slice(0, layout.axis);
  const shape = [...before, sum(rows), ...own.slice(layout.axis)];
  const outer = elementCount(before);
  return { name, datatype, shape, data: parts.map(({ data }) => data), ...(outer > 1 && { woven: { rows, outer } }) };
}

/**
 * @param rows how many rows belong to each request, in their order
 * @param layout undefined for the single request of a model without a batch axis
 * @returns one tensor for each request; their data may be views of the output's
 * @throws RangeError if the output does not have the batch's rows
 */
export function split(
  { name, datatype, shape, data }: PlainTensor,
  rows: readonly number[],
  layout: Layout | undefined,
): Tensor[] {
  const whole = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (layout === undefined) return [{ name, datatype, shape, data: whole }];
  const total = sum(rows);
  const { axis, bare } = layout;
  if (shape[axis] !== total) {
    throw new RangeError(`output '${name}' has ${shape[axis] ?? "no"} rows, expected ${total}`);
  }
  const own = bare ? [1] : shape.toSpliced(axis, 1);
  const perRow = elementCount(own);
  const outer = elementCount(shape.slice(0, axis));
  if (datatype !== "BYTES" && !hasItsBytes({ datatype, shape, data })) {
    throw new RangeError(`output '${name}' has ${whole.length} bytes, which its shape does not make`);
  }
  const rowBytes = whole.length / total;
  let offset = 0;
  let row = 0;
  const parts = rows.map((count) => {
    const part = { name, datatype, shape: [count, ...own] };
    if (outer > 1) {
      const unwoven = Buffer.allocUnsafe(rowBytes * count);
      const size = rowBytes / outer;
      for (let i = 0; i < count; i++, row++) {
        copyStrided(whole, row * size, size * total, unwoven, i * rowBytes, size, size, outer);
      }
      return { ...part, data: unwoven };
    }
    const end = datatype === "BYTES" ? stringsEnd(whole, offset, count * perRow) : offset + rowBytes * count;
    if (end === undefined) throw new RangeError(`output '${name}' has fewer strings than its shape makes`);
    const view = whole.subarray(offset, end);
    offset = end;
    return { ...part, data: view };
  });
  if (outer === 1 && offset !== whole.length) throw new RangeError(`output '${name}' has more than its rows`);
  return parts;
}

function describe({ name, datatype, shape, data }: Tensor): string {
  return `'${name}' (${datatype}, shape [${shape.join(",")}], ${data.length} bytes)`;
}

/** Whether a part has these rows, and agrees with the first part in all else. */
function isLike(first: Tensor, { name, datatype, shape }: Tensor, rows: number | undefined): boolean {
  if (name !== first.name || datatype !== first.datatype || shape.length !== first.shape.length) return false;
  return shape.every((dim, axis) => dim === (axis === 0 ? rows : first.shape[axis]));
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
