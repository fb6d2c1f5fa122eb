/**
 * JSON `data` to a tensor's little-endian bytes. Nesting is flattened in order, whatever its form, as Triton does. Integers wrap to
 * the tensor's width, but must be 64-bit ones: beyond that no width is meant. Typed arrays write in the machine's own order, which
 * is little-endian on everything that Node is released for but s390x.
 */
import { datatypeBytes, type Datatype } from "#shared/model/datatype.js";
import type { JsonValue } from "#shared/json/parse.js";
import { InferenceError } from "#shared/errors.js";
import { asArray, unparsable } from "./members.js";

type NumberArray = Int8Array | Int16Array | Int32Array | Uint8Array | Uint16Array | Uint32Array;

const minInt64 = -(2n ** 63n);
const maxUint64 = 2n ** 64n - 1n;

/** @param count elements that the tensor's shape asks for */
export function jsonToRaw(
  input: string,
  datatype: Datatype,
  value: JsonValue,
  count: number,
  maxBytes: number,
): Buffer {
  if (datatype === "FP16" || datatype === "BF16") {
    throw new InferenceError(
      "invalid_argument",
      `receiving ${datatype} data via JSON is not supported. Please use the binary data format for input ${input}`,
    );
  }
  const data = asArray(value, "data");
  checkCount(countElements(data), count);
  const bytes = datatype === "BYTES" ? stringBytes(data) : count * datatypeBytes[datatype];
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

/** Before anything is allocated: the shape is only what the client says. */
function countElements(data: readonly JsonValue[]): number {
  let count = data.length;
  for (const item of data) if (Array.isArray(item)) count += countElements(item) - 1;
  return count;
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

/** Calls `write` for each element in row-major order. */
function eachElement(data: readonly JsonValue[], write: (item: JsonValue, index: number) => void, from = 0): number {
  let index = from;
  for (const item of data) {
    if (Array.isArray(item)) index = eachElement(item, write, index);
    else write(item, index++);
  }
  return index;
}

function bufferOf(array: NodeJS.TypedArray): Buffer {
  return Buffer.from(array.buffer, array.byteOffset, array.byteLength);
}

function writeBooleans(data: JsonValue[], count: number): Buffer {
  const raw = Buffer.allocUnsafe(count);
  eachElement(data, (item, index) => {
    if (typeof item !== "boolean") throw unparsable("data", "boolean");
    raw[index] = item ? 1 : 0;
  });
  return raw;
}

function inRange(item: bigint): boolean {
  return item >= minInt64 && item <= maxUint64;
}

function writeIntegers(data: JsonValue[], array: NumberArray, wanted: string): Buffer {
  eachElement(data, (item, index) => {
    if (Number.isSafeInteger(item)) array[index] = item as number;
    else if (typeof item === "bigint" && inRange(item)) array[index] = Number(BigInt.asIntN(32, item));
    else throw unparsable("data", wanted);
  });
  return bufferOf(array);
}

function writeLongIntegers(data: JsonValue[], count: number, wanted: string): Buffer {
  const longs = new BigInt64Array(count);
  const halves = new Int32Array(longs.buffer);
  eachElement(data, (item, index) => {
    if (Number.isSafeInteger(item)) {
      // Two's complement by halves: several times faster than a bigint per element.
      halves[2 * index] = item as number;
      halves[2 * index + 1] = Math.floor((item as number) / 2 ** 32);
    } else if (typeof item === "bigint" && inRange(item)) longs[index] = item;
    else throw unparsable("data", wanted);
  });
  return bufferOf(longs);
}

function writeFloats(data: JsonValue[], array: Float32Array | Float64Array): Buffer {
  eachElement(data, (item, index) => {
    if (typeof item === "number") array[index] = item;
    else if (typeof item === "bigint") array[index] = Number(item);
    else throw unparsable("data", "number");
  });
  return bufferOf(array);
}

function stringBytes(data: JsonValue[]): number {
  let bytes = 0;
  eachElement(data, (item) => {
    if (typeof item !== "string") throw unparsable("data", "string");
    bytes += 4 + Buffer.byteLength(item);
  });
  return bytes;
}

function writeStrings(data: JsonValue[], bytes: number): Buffer {
  const raw = Buffer.allocUnsafe(bytes);
  let offset = 0;
  eachElement(data, (item) => {
    const length = raw.write(item as string, offset + 4);
    raw.writeUInt32LE(length, offset);
    offset += 4 + length;
  });
  return raw;
}
