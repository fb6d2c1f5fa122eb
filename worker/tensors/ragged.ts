/**
 * Ragged batches: a graph gets the elements of all requests as one row of numbers, further inputs
 * that say where each request's elements are, and gives outputs that are divided by the shapes of
 * an input (`allow_ragged_batch`, `batch_input` and `batch_output` of a configuration).
 */
import type { Tensor } from "#shared/frame.js";
import { kserveType, type BatchInput, type ModelConfig } from "#shared/model/config.js";
import { elementCount, datatypeBytes, type Datatype } from "#shared/model/datatype.js";
import { hasItsBytes, stringsEnd } from "#shared/model/tensor-bytes.js";
import type { Pieces } from "./memory.js";
import type { PlainTensor } from "./protocol.js";

/** Inputs that the worker makes from the shapes of an input of the requests. */
export interface MadeInput {
  readonly kind: BatchInput["kind"];
  /** The inputs of the graph that get the same values. */
  readonly names: readonly string[];
  readonly datatype: Datatype;
  readonly source: string;
}

/** An output that is divided by the shapes of an input. */
export interface Scattered {
  readonly source: string;
  /** The output's shape in answers, without rows; -1 is the input's size at the same axis. */
  readonly dims: readonly number[];
}

export interface Ragged {
  /** Inputs whose shapes may differ within a batch. */
  readonly inputs: ReadonlySet<string>;
  readonly made: readonly MadeInput[];
  /** By the names of the outputs. */
  readonly scattered: ReadonlyMap<string, Scattered>;
}

/** @returns undefined for a model that has nothing of this */
export function raggedOf({ input, output, batch_input, batch_output }: ModelConfig): Ragged | undefined {
  const inputs = input.filter(({ allow_ragged_batch: ragged }) => ragged).map(({ name }) => name);
  const made = batch_input.map(({ kind, target_name: names, data_type, source_input: [source = ""] }) => {
    return { kind, names, datatype: kserveType(data_type), source };
  });
  const dimsOf = (target: string) => output.find(({ name }) => name === target)?.dims ?? [];
  const scattered = batch_output.flatMap(({ target_name: names, source_input: [source = ""] }) =>
    names.map((name) => [name, { source, dims: dimsOf(name) }] as const),
  );
  if (inputs.length + made.length + scattered.length === 0) return undefined;
  return { inputs: new Set(inputs), made, scattered: new Map(scattered) };
}

/** The tensors of the graph that have no batch axis because of the above. */
export function withoutAxis({ inputs, made, scattered }: Ragged): ReadonlySet<string> {
  return new Set([...inputs, ...made.flatMap(({ names }) => names), ...scattered.keys()]);
}

/**
 * Joins the elements of all requests into one row.
 * @throws RangeError if a part does not have the bytes of its shape
 */
export function joined(parts: readonly Tensor[]): Pieces {
  const [first] = parts;
  if (first === undefined) throw new RangeError("a part is needed for each request");
  const { name, datatype } = first;
  const fault = parts.find((part) => part.name !== name || part.datatype !== datatype || !hasItsBytes(part));
  if (fault !== undefined) throw new RangeError(`'${fault.name}' does not have the bytes of its shape`);
  const elements = parts.reduce((sum, { shape }) => sum + elementCount(shape), 0);
  return { name, datatype, shape: [elements], data: parts.map(({ data }) => data) };
}

/**
 * @param shapes of the source input in each request
 * @param rows whether the shapes begin with the rows of a request
 */
export function makeInputs(
  { kind, names, datatype }: MadeInput,
  shapes: readonly (readonly number[])[],
  rows: boolean,
): Pieces[] {
  const { shape, values } = valuesOf(kind, shapes, rows);
  const data = Buffer.alloc(4 * elementCount(shape));
  for (const [i, value] of values.entries()) {
    if (datatype === "FP32") data.writeFloatLE(value, 4 * i);
    else data.writeInt32LE(value, 4 * i);
  }
  return names.map((name) => ({ name, datatype, shape, data: [data] }));
}

interface Values {
  readonly shape: readonly number[];
  /** Absent values are zeros. */
  readonly values: readonly number[];
}

function valuesOf(kind: BatchInput["kind"], shapes: readonly (readonly number[])[], rows: boolean): Values {
  const counts = shapes.map(elementCount);
  const inRow = (values: readonly number[]): Values => ({ shape: [values.length], values });
  switch (kind) {
    case "BATCH_ELEMENT_COUNT":
      return inRow(counts);
    case "BATCH_ACCUMULATED_ELEMENT_COUNT":
      return inRow(sums(counts));
    case "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO":
      return inRow([0, ...sums(counts)]);
    case "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE":
      // Only the size means something.
      return { shape: [counts.reduce((most, count) => Math.max(most, count), 0)], values: [] };
    case "BATCH_ITEM_SHAPE":
    case "BATCH_ITEM_SHAPE_FLATTEN": {
      const items = shapes.flatMap((shape) => {
        const own = rows ? shape.slice(1) : shape;
        return Array.from({ length: rows ? (shape[0] ?? 0) : 1 }, () => own);
      });
      const values = items.flat();
      return kind === "BATCH_ITEM_SHAPE" ? { shape: [items.length, items[0]?.length ?? 0], values } : inRow(values);
    }
  }
}

function sums(counts: readonly number[]): number[] {
  let sum = 0;
  return counts.map((count) => (sum += count));
}

/**
 * Divides an output by the shapes of its source input.
 *
 * @param rows whether the shapes begin with the rows of a request
 * @returns a tensor for each request, whose data are views of the output's
 * @throws RangeError if the output does not have as many elements as these shapes make
 */
export function scatter(
  { name, datatype, data }: PlainTensor,
  { dims }: Scattered,
  shapes: readonly (readonly number[])[],
  rows: boolean,
): Tensor[] {
  const whole = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  let at = 0;
  const parts = shapes.map((source) => {
    const shape = [...(rows ? [-1] : []), ...dims].map((dim, axis) => (dim === -1 ? (source[axis] ?? 1) : dim));
    const count = elementCount(shape);
    const end = datatype === "BYTES" ? stringsEnd(whole, at, count) : at + count * datatypeBytes[datatype];
    if (end === undefined || end > whole.length) {
      throw new RangeError(`output '${name}' has fewer elements than the shapes of its source input make`);
    }
    const part = { name, datatype, shape, data: whole.subarray(at, end) };
    at = end;
    return part;
  });
  if (at !== whole.length) {
    throw new RangeError(`output '${name}' has more elements than the shapes of its source input make`);
  }
  return parts;
}
