/**
 * Converts BYTES tensors between KServe's form, where each element follows its length as a
 * little-endian u32, and the JavaScript strings that ONNX Runtime for Node takes and gives.
 */
import { elementFault, stringElements } from "#shared/model/strings.js";

/**
 * The gateway has checked that the lengths fit, and has refused strings that no model can be given.
 * The check here is for strings that no gateway sees, such as those of a state.
 *
 * @param input its name, for the error
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
 * ONNX Runtime for Node gives an output's strings out with U+FFFD in the place of bytes that are
 * not UTF-8. This is called for models that hold such bytes (`onnx-strings.ts`); where a model
 * holds none, a U+FFFD is its own.
 *
 * @throws TypeError for an output that may have been changed
 */
export function checkOutputStrings(output: string, strings: readonly string[]): void {
  const index = strings.findIndex((text) => text.includes("\uFFFD"));
  if (index === -1) return;
  const why = "the model has strings that are not UTF-8, and ONNX Runtime for Node gives U+FFFD in their place";
  throw new TypeError(`element ${index} of output '${output}' may not be what the model gave: ${why}`);
}
