/**
 * Searches an ONNX file for strings that are not UTF-8. A model's output strings come from its
 * inputs, which are UTF-8, and from its file. So only a model whose file holds other bytes can give
 * them out, and ONNX Runtime for Node would turn them into U+FFFD.
 */
import { isUtf8 } from "node:buffer";
import { WireReader } from "./wire.js";

type FieldKind = keyof typeof messages | "string";

/**
 * The messages of ONNX's protobuf schema (`onnx.proto`): by number, the fields that hold strings,
 * or messages with strings.
 */
const messages = {
  model: { 7: "graph", 25: "function" },
  function: { 7: "node", 11: "attribute" },
  graph: { 1: "node", 5: "tensor", 15: "sparseTensor" },
  node: { 5: "attribute" },
  attribute: {
    4: "string",
    5: "tensor",
    6: "graph",
    9: "string",
    10: "tensor",
    11: "graph",
    22: "sparseTensor",
    23: "sparseTensor",
  },
  sparseTensor: { 1: "tensor" },
  tensor: { 6: "string" },
} as const;

/**
 * @param file a whole ONNX file
 * @returns whether the file holds strings that are not UTF-8; also true if the file is unreadable
 */
export function mayHoldOtherBytes(file: Buffer): boolean {
  try {
    return inMessage(file, messages.model);
  } catch (error) {
    if (error instanceof RangeError) return true;
    throw error;
  }
}

/** @throws RangeError if the bytes are no protobuf message */
function inMessage(bytes: Buffer, fields: Readonly<Record<number, FieldKind>>): boolean {
  const reader = new WireReader(bytes);
  while (!reader.atEnd) {
    const { field, content } = reader.next();
    const kind = fields[field];
    if (content === undefined || kind === undefined) continue;
    if (kind === "string" ? !isUtf8(content) : inMessage(content, messages[kind])) return true;
  }
  return false;
}
