/**
 * The tensors of a generator: one text comes in, and one for each choice goes out. A client may
 * choose any name for its text, unless the model's own configuration names the tensors.
 */
import { isUtf8 } from "node:buffer";
import type { ServedModel } from "#shared/contract/announcement.js";
import { InferenceError } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";

/** Default names of a generator's input and output. */
const usualNames = { input: "text_input", output: "text_output" } as const;

/**
 * Describes a generator by the name that the request gives to its text. The answer to `text_input`
 * is `text_output`; the answer to any other name has that same name.
 *
 * @returns the model itself if it is no generator, if its configuration names its tensors, or if
 * the request has no single text
 */
export function underItsTextName(model: ServedModel, inputs: readonly Tensor[]): ServedModel {
  const [given, ...others] = inputs;
  if (model.generator === undefined || model.generator.namesText === true) return model;
  if (given?.datatype !== "BYTES" || others.length > 0 || given.name === usualNames.input) return model;
  const named = { name: given.name, datatype: given.datatype, dims: [1] };
  return { ...model, inputs: [named], outputs: [named] };
}

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
