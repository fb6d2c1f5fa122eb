/**
 * Converts BYTES tensors between KServe's form, in which each element follows its length as a
 * little-endian u32, and the JavaScript strings that ONNX Runtime for Node takes and gives.
 */
import { elementFault, stringElements } from "#shared/model/strings.js";

/**
 * Decodes an input's strings. The gateway has checked the lengths, and has refused strings that
 * ONNX Runtime cannot take. The check here is for strings that no gateway sees, such as a state's.
 *
 * @param input the input's name, for the error
 * @throws TypeError for a string that would arrive changed
 */
export function decodeStrings(input: string, data: Uint8Array): string[] {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const found = elementFault(bytes);
  if (found !== undefined) throw new TypeError(`element ${found.index} of input '${input}' ${found.fault}`);
  return stringElements(bytes);
}

/** @returns the strings in UTF-8, each after its length */
export function encodeStrings(strings: readonly string[]): Uint8Array<ArrayBuffer> {
  const total = strings.reduce((sum, item) => sum + 4 + Buffer.byteLength(item), 0);
  const bytes = new Uint8Array(total);
  const view = Buffer.from(bytes.buffer);
  let at = 0;
  for (const item of strings) {
    const length = view.write(item, at + 4);
    view.writeUInt32LE(length, at);
    at += 4 + length;
  }
  return bytes;
}

/**
 * ONNX Runtime for Node puts U+FFFD into an output's strings in place of bytes that are not UTF-8.
 * To be called for models that hold such bytes (`onnx-search.ts`); in other models, a U+FFFD is
 * the model's own.
 *
 * @throws TypeError for an output that the runtime may have changed
 */
export function checkOutputStrings(output: string, strings: readonly string[]): void {
  const index = strings.findIndex((text) => text.includes("\uFFFD"));
  if (index === -1) return;
  const why = "the model has strings that are not UTF-8, and ONNX Runtime for Node gives U+FFFD in their place";
  throw new TypeError(`element ${index} of output '${output}' may not be what the model gave: ${why}`);
}
