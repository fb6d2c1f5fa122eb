/** A generator's only tensors: text in and text out, each element a string. */
import { isUtf8 } from "node:buffer";
import { InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";

/** Of a tensor that was found valid. @throws InferenceError where its bytes are no text */
export function textOfInput({ name, data }: Tensor, model: string): string {
  const text = data.subarray(4);
  if (isUtf8(text)) return text.toString("utf8");
  throw new InferenceError("invalid_argument", `inference input '${name}' for model '${model}' must be UTF-8 text`);
}

export function outputTensor(texts: readonly string[]): Tensor {
  const parts = texts.flatMap((text) => {
    const length = Buffer.allocUnsafe(4);
    const bytes = Buffer.from(text);
    length.writeUInt32LE(bytes.length);
    return [length, bytes];
  });
  return { name: "text_output", datatype: "BYTES", shape: [texts.length], data: Buffer.concat(parts) };
}
