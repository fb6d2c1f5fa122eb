/** Turns the data of tensors from JSON into little-endian bytes, and back. */
import { datatypeBytes, type Datatype } from "#shared/model/datatype.js";
import { spanOf } from "#shared/model/tensor-bytes.js";
import type { TensorData } from "#shared/json/tensor-data.js";
import { isUtf8 } from "node:buffer";
import { fixedError, InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { unparsable } from "#shared/json/members.js";
import { notInJson } from "./validate.js";

type NumberArray = Int8Array | Int16Array | Int32Array | Uint8Array | Uint16Array | Uint32Array;

const minInt64 = -(2n ** 63n);
const maxUint64 = 2n ** 64n - 1n;

/**
 * Turns JSON data into a tensor's little-endian bytes. Flattens nested lists of any form in order,
 * as Triton does. Integers wrap to the width of the datatype, but must fit in 64 bits: a larger
 * integer cannot be meant for any width. Typed arrays use the machine's byte order, which is
 * little-endian on every platform of node except s390x.
 * @param input name of the input, for refusals
 * @param count elements that the tensor's shape asks for
 * @param maxBytes most that the tensor may take
 * @throws InferenceError
 */
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
  // Checks before any allocation, because the shape is only a claim of the client.
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
  throw fixedError("data_shape_mismatch", got > wanted ? "tooManyElements" : "tooFewElements");
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
      // Writing two's complement by halves is several times faster than a bigint per element.
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

/**
 * Writes a tensor's little-endian bytes as the flat JSON array of an output's `data`. 64-bit
 * integers are exact, and floats look as Triton prints them.
 * @throws InferenceError if JSON has no form for the datatype, or a string is not UTF-8
 */
export function rawToJson(tensor: Tensor): string {
  const { data, datatype } = tensor;
  switch (datatype) {
    case "BOOL":
      return `[${Array.from(data, (byte) => (byte === 0 ? "false" : "true")).join(",")}]`;
    case "UINT8":
      return integers(new Uint8Array(...spanOf(data, 1)));
    case "UINT16":
      return integers(new Uint16Array(...spanOf(data, 2)));
    case "UINT32":
      return integers(new Uint32Array(...spanOf(data, 4)));
    case "UINT64":
      return `[${new BigUint64Array(...spanOf(data, 8)).join(",")}]`;
    case "INT8":
      return integers(new Int8Array(...spanOf(data, 1)));
    case "INT16":
      return integers(new Int16Array(...spanOf(data, 2)));
    case "INT32":
      return integers(new Int32Array(...spanOf(data, 4)));
    case "INT64":
      return `[${new BigInt64Array(...spanOf(data, 8)).join(",")}]`;
    case "FP32":
      return `[${floats(new Float32Array(...spanOf(data, 4)))}]`;
    case "FP64":
      return `[${floats(new Float64Array(...spanOf(data, 8)))}]`;
    case "BYTES":
      return `[${strings(tensor)}]`;
    default:
      throw notInJson(datatype, tensor.name);
  }
}

/** Printing a plain array takes half the time of joining a typed array. */
function integers(array: Integers): string {
  return `[${inPieces(array.length, (from, to) => JSON.stringify(Array.from(array.subarray(from, to))).slice(1, -1))}]`;
}

type Integers = Int8Array | Int16Array | Int32Array | Uint8Array | Uint16Array | Uint32Array;

/**
 * Prints a whole number with `.0` and zero with its sign, so that a reader in any language gets
 * floats back.
 */
function floats(array: Float32Array | Float64Array): string {
  const print = (value: number): string => {
    if (!Number.isInteger(value) || Math.abs(value) >= 1e21) return String(value);
    return Object.is(value, -0) ? "-0.0" : `${value}.0`;
  };
  return inPieces(array.length, (from, to) => Array.from(array.subarray(from, to), print).join(","));
}

/**
 * Elements to print at a time. Meanwhile each is a string of its own, which takes far more memory
 * than its digits.
 */
const pieceLength = 65_536;

function inPieces(length: number, print: (from: number, to: number) => string): string {
  let text = "";
  for (let from = 0; from < length; from += pieceLength) {
    text += (from === 0 ? "" : ",") + print(from, Math.min(length, from + pieceLength));
  }
  return text;
}

function strings({ name, data }: Tensor): string {
  const texts: string[] = [];
  for (let at = 0; at < data.length;) {
    const end = at + 4 + data.readUInt32LE(at);
    const element = data.subarray(at + 4, end);
    if (!isUtf8(element)) {
      throw new InferenceError(
        "invalid_argument",
        `sending BYTES data that is not UTF-8 via JSON is not supported. Please use the binary data format for output ${name}`,
      );
    }
    texts.push(JSON.stringify(element.toString("utf8")));
    at = end;
  }
  return texts.join(",");
}
