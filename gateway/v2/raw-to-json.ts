/** A tensor's little-endian bytes as the flat JSON array of an output's `data`; 64-bit integers exactly, floats as Triton prints. */
import { isUtf8 } from "node:buffer";
import { InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";

export function rawToJson(tensor: Tensor): string {
  const { data, datatype } = tensor;
  switch (datatype) {
    case "BOOL":
      return `[${Array.from(data, (byte) => (byte === 0 ? "false" : "true")).join(",")}]`;
    case "UINT8":
      return `[${new Uint8Array(...span(data, 1)).join(",")}]`;
    case "UINT16":
      return `[${new Uint16Array(...span(data, 2)).join(",")}]`;
    case "UINT32":
      return `[${new Uint32Array(...span(data, 4)).join(",")}]`;
    case "UINT64":
      return `[${new BigUint64Array(...span(data, 8)).join(",")}]`;
    case "INT8":
      return `[${new Int8Array(...span(data, 1)).join(",")}]`;
    case "INT16":
      return `[${new Int16Array(...span(data, 2)).join(",")}]`;
    case "INT32":
      return `[${new Int32Array(...span(data, 4)).join(",")}]`;
    case "INT64":
      return `[${new BigInt64Array(...span(data, 8)).join(",")}]`;
    case "FP32":
      return `[${floats(new Float32Array(...span(data, 4)))}]`;
    case "FP64":
      return `[${floats(new Float64Array(...span(data, 8)))}]`;
    case "BYTES":
      return `[${strings(tensor)}]`;
    default:
      throw notInJson(datatype, tensor.name);
  }
}

export function notInJson(datatype: "FP16" | "BF16", output: string): InferenceError {
  return new InferenceError(
    "invalid_argument",
    `sending ${datatype} data via JSON is not supported. Please use the binary data format for output ${output}`,
  );
}

/** Typed arrays want their bytes aligned, and a tensor may begin anywhere in a frame: then it is copied once. */
function span(data: Buffer, size: number): [ArrayBufferLike, number, number] {
  const view = data.byteOffset % size === 0 ? data : new Uint8Array(data);
  return [view.buffer, view.byteOffset, Math.floor(data.length / size)];
}

/** A whole number keeps `.0` and zero its sign, so that the reader gets floats back whatever its language makes of `1`. */
function floats(array: Float32Array | Float64Array): string {
  const texts: string[] = Array.from({ length: array.length });
  for (let index = 0; index < array.length; index++) {
    const value = array[index] as number;
    if (!Number.isInteger(value) || Math.abs(value) >= 1e21) texts[index] = String(value);
    else texts[index] = Object.is(value, -0) ? "-0.0" : `${value}.0`;
  }
  return texts.join(",");
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
