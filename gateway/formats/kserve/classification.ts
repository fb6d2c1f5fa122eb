/**
 * Triton's classification extension: in place of a tensor, an output has its largest values as
 * texts, each with the index and the name of its class.
 */
import { hasRows, type ServedModel, type TensorSpec } from "#shared/contract/announcement.js";
import { InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { elementCount, type Datatype } from "#shared/model/datatype.js";
import type { RequestedOutput } from "./request.js";

/** How to read the elements of a datatype, and their texts; others have no order of values. */
const readers: Readonly<Partial<Record<Datatype, (data: Buffer, at: number) => number | bigint>>> = {
  BOOL: (data, at) => data.readUInt8(at),
  UINT8: (data, at) => data.readUInt8(at),
  UINT16: (data, at) => data.readUInt16LE(2 * at),
  UINT32: (data, at) => data.readUInt32LE(4 * at),
  UINT64: (data, at) => data.readBigUInt64LE(8 * at),
  INT8: (data, at) => data.readInt8(at),
  INT16: (data, at) => data.readInt16LE(2 * at),
  INT32: (data, at) => data.readInt32LE(4 * at),
  INT64: (data, at) => data.readBigInt64LE(8 * at),
  FP32: (data, at) => data.readFloatLE(4 * at),
  FP64: (data, at) => data.readDoubleLE(8 * at),
};

/** @throws InferenceError if the output's values have no order */
export function checkClassification({ datatype }: Pick<TensorSpec, "datatype">): void {
  if (readers[datatype] !== undefined) return;
  const text = `class result not available for output due to unsupported type '${datatype}'`;
  throw new InferenceError("invalid_argument", text);
}

/**
 * @param requested the outputs as the client named them
 * @param model of the answer, whose announcement has the labels
 * @returns the tensors; those of which the client wants classes are BYTES of shape [b, n], or [n]
 *   without a batch dimension
 */
export function classified(
  tensors: readonly Tensor[],
  requested: readonly RequestedOutput[],
  model: ServedModel,
): readonly Tensor[] {
  if (requested.every(({ classes }) => classes === undefined)) return tensors;
  return tensors.map((tensor) => {
    const classes = requested.find(({ name }) => name === tensor.name)?.classes;
    const spec = model.outputs.find(({ name }) => name === tensor.name);
    return classes === undefined || spec === undefined ? tensor : classesOf(tensor, classes, spec, model);
  });
}

/** The largest comes first. NaN is larger than nothing, so it comes last. */
function compareDown(a: number | bigint, b: number | bigint): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
  if (a === b) return 0;
  return a > b ? -1 : 1;
}

function classesOf(tensor: Tensor, most: number, spec: TensorSpec, model: ServedModel): Tensor {
  const { name, datatype, shape, data } = tensor;
  const read = readers[datatype];
  if (read === undefined) throw new TypeError(`an output of ${datatype} was not checked`);
  const rows = hasRows(model, spec) ? (shape[0] ?? 1) : 1;
  const all = rows === 0 ? 0 : elementCount(shape) / rows;
  const count = Math.min(most, all);
  const isFloat = datatype === "FP32" || datatype === "FP64";
  const texts = Array.from({ length: rows }, (_, row) => {
    const values = Array.from({ length: all }, (__, i) => ({ i, value: read(data, row * all + i) }));
    values.sort((a, b) => compareDown(a.value, b.value));
    return values.slice(0, count).map(({ i, value }) => {
      const label = spec.labels?.[i];
      return `${isFloat ? Number(value).toFixed(6) : String(value)}:${i}${label ? `:${label}` : ""}`;
    });
  });
  const pieces = texts.flat().flatMap((text) => {
    const length = Buffer.allocUnsafe(4);
    const bytes = Buffer.from(text);
    length.writeUInt32LE(bytes.length);
    return [length, bytes];
  });
  const batch = hasRows(model, spec) ? [rows] : [];
  return { name, datatype: "BYTES", shape: [...batch, count], data: Buffer.concat(pieces) };
}
