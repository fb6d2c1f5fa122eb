/**
 * Checks that a string reaches an ONNX model unchanged. ONNX Runtime for Node takes JavaScript
 * strings and hands C strings to the model. Bytes that are not UTF-8 would become U+FFFD, and
 * everything after a NUL would be lost. Baton refuses such strings, and never changes them.
 */
import { isUtf8 } from "node:buffer";

/** @returns the fault, as the end of a sentence; undefined for a valid string */
export function stringFault(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return "holds a NUL byte, and ONNX Runtime for Node would drop all that follows it";
  if (!isUtf8(bytes)) return "is not UTF-8, and ONNX Runtime for Node takes no other bytes";
  return undefined;
}

export interface ElementFault {
  readonly index: number;
  /** The fault from `stringFault`. */
  readonly fault: string;
}

/**
 * The first fault among the elements of a BYTES tensor with valid length prefixes. A tensor may
 * have tens of millions of elements, so the function builds nothing for most of them.
 */
export function elementFault(data: Buffer): ElementFault | undefined {
  for (let at = 0, index = 0; at < data.length; index++) {
    const start = at + 4;
    at = start + data.readUInt32LE(at);
    if (isPlain(data, start, at)) continue;
    const fault = stringFault(data.subarray(start, at));
    if (fault !== undefined) return { index, fault };
  }
  return undefined;
}

/**
 * Whether an element is ASCII without NUL. Most elements are, and a view of such a short element
 * would cost more than this check.
 */
function isPlain(data: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = data[at] as number;
    if (byte === 0 || byte > 0x7f) return false;
  }
  return true;
}

/** The strings of a BYTES tensor in which `elementFault` finds no fault. */
export function stringElements(data: Buffer): string[] {
  const elements: string[] = [];
  for (let at = 0; at < data.length;) {
    const start = at + 4;
    at = start + data.readUInt32LE(at);
    elements.push(start === at ? "" : data.toString("utf8", start, at));
  }
  return elements;
}
