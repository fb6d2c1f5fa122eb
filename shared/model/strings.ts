/**
 * What a string must be like so that it reaches an ONNX model unchanged. ONNX Runtime for Node takes
 * JavaScript strings and hands them to the model as C strings: bytes that are not UTF-8 would become
 * U+FFFD, and everything after a NUL would be dropped. Such strings are refused, never changed.
 */
import { isUtf8 } from "node:buffer";

/** @returns what stands in the way of the string, as the end of a sentence; undefined if nothing. */
export function stringFault(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return "holds a NUL byte, and ONNX Runtime for Node would drop all that follows it";
  if (!isUtf8(bytes)) return "is not UTF-8, and ONNX Runtime for Node takes no other bytes";
  return undefined;
}

/** The elements of a BYTES tensor whose length prefixes are known to fit: views of `data`. */
export function stringElements(data: Buffer): Buffer[] {
  const elements: Buffer[] = [];
  for (let at = 0; at < data.length;) {
    const end = at + 4 + data.readUInt32LE(at);
    elements.push(data.subarray(at + 4, end));
    at = end;
  }
  return elements;
}
