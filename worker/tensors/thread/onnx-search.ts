/**
 * Searches a whole ONNX file, with all its subgraphs and functions, for two things that ONNX
 * Runtime for Node treats in its own way: strings that are not UTF-8, and external data.
 */
import { isUtf8 } from "node:buffer";
import { WireReader } from "./wire.js";

type FieldKind = keyof typeof messages | "string" | "external";

/**
 * The messages of ONNX's protobuf schema (`onnx.proto`): by number, the fields that hold strings or
 * places of external data, or messages with such fields.
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
  tensor: { 6: "string", 13: "external" },
} as const;

/**
 * A model's output strings come from its inputs, which are UTF-8, and from its file. So only a
 * model whose file holds other bytes can give them out, and ONNX Runtime for Node would turn them
 * into U+FFFD.
 *
 * @param file a whole ONNX file
 * @returns whether the file holds strings that are not UTF-8; also true if the file is unreadable
 */
export function mayHoldOtherBytes(file: Buffer): boolean {
  try {
    return inMessage(file, messages.model, (kind, content) => kind === "string" && !isUtf8(content));
  } catch (error) {
    if (error instanceof RangeError) return true;
    throw error;
  }
}

/**
 * @param file a whole ONNX file
 * @returns whether a tensor of the file has its data in another file
 * @throws RangeError if the file is no ONNX file
 */
export function hasExternalData(file: Buffer): boolean {
  return inMessage(file, messages.model, (kind) => kind === "external");
}

type Found = (kind: "string" | "external", content: Buffer) => boolean;

/** @throws RangeError if the bytes are no protobuf message */
function inMessage(bytes: Buffer, fields: Readonly<Record<number, FieldKind>>, isFound: Found): boolean {
  const reader = new WireReader(bytes);
  while (!reader.atEnd) {
    const { field, content } = reader.next();
    const kind = fields[field];
    if (content === undefined || kind === undefined) continue;
    const isLeaf = kind === "string" || kind === "external";
    if (isLeaf ? isFound(kind, content) : inMessage(content, messages[kind], isFound)) return true;
  }
  return false;
}
