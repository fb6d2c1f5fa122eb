/**
 * Stacks the tensors of a batch's requests along the graph's batch axis, and splits the model's
 * outputs again. Outside of the graph the batch is always the first axis: clients send and get
 * `[batch, ...dims]`, and states are kept so.
 */
import type { Tensor } from "#shared/frame.js";
import { elementCount } from "#shared/model/datatype.js";
import { copyStrided, type Pieces } from "./memory.js";
import type { PlainTensor } from "./protocol.js";

/** How the graph has a tensor that clients know as `[batch, ...dims]`. */
export interface Layout {
  /** The graph's batch axis. */
  readonly axis: number;
  /** Whether the graph has no other axis, although the configuration must name one: dims [1]. */
  readonly bare: boolean;
}

/**
 * @param parts one tensor of each request; their shapes agree but for the batch
 * @param layout undefined for what all requests share, and for the single request of a model
 * without a batch axis
 * @returns the stacked tensor, its data still in one piece for each request
 */
export function stack(parts: readonly Tensor[], layout: Layout | undefined): Pieces {
  const [first] = parts;
  if (first === undefined) throw new RangeError("nothing to stack");
  const { name, datatype } = first;
  if (layout === undefined) return { name, datatype, shape: first.shape, data: [first.data] };
  const rows = parts.map(({ shape }) => shape[0] ?? 1);
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
 * @throws RangeError when the output does not have the batch's rows
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
  const rowBytes = whole.length / total;
  let offset = 0;
  let row = 0;
  return rows.map((count) => {
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
    const view = whole.subarray(offset, end);
    offset = end;
    return { ...part, data: view };
  });
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/** Where `count` strings, each after its length, end that begin at `from`. */
function stringsEnd(data: Buffer, from: number, count: number): number {
  let at = from;
  for (let i = 0; i < count; i++) at += 4 + data.readUInt32LE(at);
  return at;
}
