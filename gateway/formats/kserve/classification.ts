/**
 * Triton's classification extension: in place of a tensor, an output has its largest values as
 * texts, each with the index and the name of its class.
 */
import { hasRows, type ServedModel, type TensorSpec } from "#shared/contract/announcement.js";
import { InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { elementCount, type Datatype } from "#shared/model/datatype.js";
import { spanOf } from "#shared/model/tensor-bytes.js";
import { topElements, Turns, type Elements } from "../top-elements.js";
import type { RequestedOutput } from "./request.js";

/** The elements of each datatype; others have no order of values. */
const views: Readonly<Partial<Record<Datatype, (data: Buffer) => Elements>>> = {
  BOOL: (data) => new Uint8Array(...spanOf(data, 1)),
  UINT8: (data) => new Uint8Array(...spanOf(data, 1)),
  UINT16: (data) => new Uint16Array(...spanOf(data, 2)),
  UINT32: (data) => new Uint32Array(...spanOf(data, 4)),
  UINT64: (data) => new BigUint64Array(...spanOf(data, 8)),
  INT8: (data) => new Int8Array(...spanOf(data, 1)),
  INT16: (data) => new Int16Array(...spanOf(data, 2)),
  INT32: (data) => new Int32Array(...spanOf(data, 4)),
  INT64: (data) => new BigInt64Array(...spanOf(data, 8)),
  FP32: (data) => new Float32Array(...spanOf(data, 4)),
  FP64: (data) => new Float64Array(...spanOf(data, 8)),
};

/** Most classes of an answer, in all its rows and outputs together. */
const MAX_CLASSES = 65_536;

/** @throws InferenceError if the output's values have no order */
export function checkClassification({ datatype }: Pick<TensorSpec, "datatype">): void {
  if (views[datatype] !== undefined) return;
  const text = `class result not available for output due to unsupported type '${datatype}'`;
  throw new InferenceError("invalid_argument", text);
}

/**
 * @param rows of the request
 * @throws InferenceError if the answer would have too many classes
 */
export function limitClasses(requested: readonly RequestedOutput[], model: ServedModel, rows: number): void {
  let sum = 0;
  for (const { name, classes } of requested) {
    const spec = model.outputs.find((output) => output.name === name);
    if (classes === undefined || spec === undefined) continue;
    const all = spec.dims.includes(-1) ? Infinity : elementCount(spec.dims);
    sum += Math.min(classes, all) * (hasRows(model, spec) ? rows : 1);
  }
  if (sum <= MAX_CLASSES) return;
  const text = `'classification' asks for up to ${sum} classes, but an answer has at most ${MAX_CLASSES}`;
  throw new InferenceError("invalid_argument", text);
}

/**
 * Refuses classes in an answer that comes later, because nothing notes what the client wants in
 * place of the tensors.
 * @throws InferenceError
 */
export function refuseClassesLater(requested: readonly RequestedOutput[]): void {
  if (!hasClasses(requested)) return;
  const text = "'classification' is not supported for a job or a request in the background: ask for the tensor instead";
  throw new InferenceError("invalid_argument", text);
}

function hasClasses(requested: readonly RequestedOutput[]): boolean {
  return requested.some(({ classes }) => classes !== undefined);
}

/**
 * @param requested the outputs as the client named them
 * @param model of the answer, whose announcement has the labels
 * @returns the tensors; those of which the client wants classes are BYTES of shape [b, n], or [n]
 *   without a batch dimension
 */
export async function classified(
  tensors: readonly Tensor[],
  requested: readonly RequestedOutput[],
  model: ServedModel,
): Promise<readonly Tensor[]> {
  if (!hasClasses(requested)) return tensors;
  const turns = new Turns();
  const shown: Tensor[] = [];
  for (const tensor of tensors) {
    const classes = requested.find(({ name }) => name === tensor.name)?.classes;
    const spec = model.outputs.find(({ name }) => name === tensor.name);
    const isTensor = classes === undefined || spec === undefined;
    shown.push(isTensor ? tensor : await classesOf(tensor, classes, { spec, model }, turns));
  }
  return shown;
}

async function classesOf(
  { name, datatype, shape, data }: Tensor,
  most: number,
  { spec, model }: { readonly spec: TensorSpec; readonly model: ServedModel },
  turns: Turns,
): Promise<Tensor> {
  const view = views[datatype];
  if (view === undefined) throw new TypeError(`an output of ${datatype} was not checked`);
  const elements = view(data);
  const rows = hasRows(model, spec) ? (shape[0] ?? 1) : 1;
  const all = rows === 0 ? 0 : elementCount(shape) / rows;
  const count = Math.min(most, all);
  const isFloat = datatype === "FP32" || datatype === "FP64";
  const pieces: Buffer[] = [];
  for (let from = 0; from < rows * all; from += all) {
    for (const place of await topElements(elements, { from, to: from + all }, count, turns)) {
      const value = elements[place] as number | bigint;
      const label = spec.labels?.[place - from];
      const text = `${isFloat ? Number(value).toFixed(6) : String(value)}:${place - from}${label ? `:${label}` : ""}`;
      const length = Buffer.allocUnsafe(4);
      length.writeUInt32LE(Buffer.byteLength(text));
      pieces.push(length, Buffer.from(text));
    }
  }
  const batch = hasRows(model, spec) ? [rows] : [];
  return { name, datatype: "BYTES", shape: [...batch, count], data: Buffer.concat(pieces) };
}
