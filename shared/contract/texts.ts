/**
 * The tensors of a generator: one text comes in, and one for each choice goes out.
 */
import { isUtf8 } from "node:buffer";
import { InferenceError } from "../errors.js";
import type { Tensor } from "../frame.js";

/** Whether a shape has one element and at most a batch dimension beside: `[1]` or `[1, 1]`. */
export function isOneText(shape: readonly number[]): boolean {
  return (shape.length === 1 || shape.length === 2) && shape.every((dim) => dim === 1);
}

/**
 * Reads the prompt from a generator's only input, a valid BYTES tensor with one element.
 * @throws InferenceError if the bytes are not UTF-8
 */
export function textOfInput({ name, data }: Tensor, model: string): string {
  const text = data.subarray(4);
  if (isUtf8(text)) return text.toString("utf8");
  throw new InferenceError("invalid_argument", `inference input '${name}' for model '${model}' must be UTF-8 text`);
}

/**
 * Makes a generator's only output.
 * @param shape shape of the input; the last dimension of the output has one element for each choice
 */
export function outputTensor(name: string, texts: readonly string[], shape: readonly number[]): Tensor {
  const parts = texts.flatMap((text) => {
    const length = Buffer.allocUnsafe(4);
    const bytes = Buffer.from(text);
    length.writeUInt32LE(bytes.length);
    return [length, bytes];
  });
  return { name, datatype: "BYTES", shape: [...shape.slice(0, -1), texts.length], data: Buffer.concat(parts) };
}
