/**
 * JSON `data` to a tensor's little-endian bytes. Nesting is flattened in order, whatever its form, as Triton does. Integers wrap to
 * the tensor's width, but must be 64-bit ones: beyond that no width is meant. Typed arrays write in the machine's own order, which
 * is little-endian on everything that Node is released for but s390x.
 */
import { datatypeBytes, type Datatype } from "#shared/model/datatype.js";
import type { TensorData } from "#shared/json/tensor-data.js";
import { InferenceError } from "#shared/errors.js";
import { unparsable } from "./members.js";

type NumberArray = Int8Array | Int16Array | Int32Array | Uint8Array | Uint16Array | Uint32Array;

const minInt64 = -(2n ** 63n);
const maxUint64 = 2n ** 64n - 1n;

/** @param count elements that the tensor's shape asks for */
export function jsonToRaw(
  input: string,
  datatype: Datatype,
  data: TensorData,
  count: number,
  maxBytes: number,
): Buffer {
  if (datatype === "FP16" || datatype === "BF16") {
    throw new InferenceError(
      "invalid_argument",
      `receiving ${datatype} data via JSON is not supported. Please use the binary data format for input ${input}`,
    );
  }
  // Before anything is allocated: the shape is only what the client says.
  checkCount(data.count, count);
  if (datatype === "BYTES" && !data.holdsOnly("string")) throw unparsable("data", "string");
  const bytes = datatype === "BYTES" ? 4 * count + data.stringBytes : count * datatypeBytes[datatype];
  if (bytes > maxBytes) {
    throw new InferenceError(
      "payload_too_large",
      `input '${input}' takes ${bytes} bytes, more than the limit of ${maxBytes} bytes for a tensor given as JSON`,
    );
  }
  switch (datatype) {
    case "BOOL":
      return writeBooleans(data, count);
    case "INT8":
      return writeIntegers(data, new Int8Array(count), "signed-integer");
    case "INT16":
      return writeIntegers(data, new Int16Array(count), "signed-integer");
    case "INT32":
      return writeIntegers(data, new Int32Array(count), "signed-integer");
    case "UINT8":
      return writeIntegers(data, new Uint8Array(count), "unsigned-integer");
    case "UINT16":
      return writeIntegers(data, new Uint16Array(count), "unsigned-integer");
    case "UINT32":
      return writeIntegers(data, new Uint32Array(count), "unsigned-integer");
    case "INT64":
      return writeLongIntegers(data, count, "signed-integer");
    case "UINT64":
      return writeLongIntegers(data, count, "unsigned-integer");
    case "FP32":
      return writeFloats(data, new Float32Array(count));
    case "FP64":
      return writeFloats(data, new Float64Array(count));
    default:
      return writeStrings(data, bytes);
  }
}

function checkCount(got: number, wanted: number): void {
  if (got === wanted) return;
  throw new InferenceError(
    "data_shape_mismatch",
    got > wanted
      ? "Unable to parse 'data': Shape does not match true shape of 'data' field"
      : "Failed to parse 'data' field: shape does not match true shape",
  );
}

function bufferOf(array: NodeJS.TypedArray): Buffer {
  return Buffer.from(array.buffer, array.byteOffset, array.byteLength);
}

function writeBooleans(data: TensorData, count: number): Buffer {
  if (!data.holdsOnly("boolean")) throw unparsable("data", "boolean");
  const raw = Buffer.allocUnsafe(count);
  const elements = data.elements();
  for (let index = 0; index < count; index++) raw[index] = elements.boolean() ? 1 : 0;
  return raw;
}

function inRange(item: bigint): boolean {
  return item >= minInt64 && item <= maxUint64;
}

function writeIntegers(data: TensorData, array: NumberArray, wanted: string): Buffer {
  if (!data.holdsOnly("number")) throw unparsable("data", wanted);
  const elements = data.elements();
  for (let index = 0; index < array.length; index++) {
    const item = elements.number();
    if (Number.isSafeInteger(item)) array[index] = item as number;
    else if (typeof item === "bigint" && inRange(item)) array[index] = Number(BigInt.asIntN(32, item));
    else throw unparsable("data", wanted);
  }
  return bufferOf(array);
}

function writeLongIntegers(data: TensorData, count: number, wanted: string): Buffer {
  if (!data.holdsOnly("number")) throw unparsable("data", wanted);
  const longs = new BigInt64Array(count);
  const halves = new Int32Array(longs.buffer);
  const elements = data.elements();
  for (let index = 0; index < count; index++) {
    const item = elements.number();
    if (Number.isSafeInteger(item)) {
      // Two's complement by halves: several times faster than a bigint per element.
      halves[2 * index] = item as number;
      halves[2 * index + 1] = Math.floor((item as number) / 2 ** 32);
    } else if (typeof item === "bigint" && inRange(item)) longs[index] = item;
    else throw unparsable("data", wanted);
  }
  return bufferOf(longs);
}

function writeFloats(data: TensorData, array: Float32Array | Float64Array): Buffer {
  if (!data.holdsOnly("number")) throw unparsable("data", "number");
  const elements = data.elements();
  for (let index = 0; index < array.length; index++) array[index] = Number(elements.number());
  return bufferOf(array);
}

function writeStrings(data: TensorData, bytes: number): Buffer {
  const raw = Buffer.allocUnsafe(bytes);
  data.writeStrings(raw);
  return raw;
}
