/**
 * The JSON in front of binary tensors, parsed once: the steps of a sequence differ in their tensors, seldom in their headers. Only small ones are remembered, and
 * all are forgotten when there are too many. What is returned is shared, and nobody changes it.
 */
import { parseJson, type JsonValue } from "#shared/json/parse.js";
import { isInputData } from "./parse-inputs.js";

const MAX_BYTES = 512;
const MAX_KNOWN = 1_024;

const known = new Map<string, JsonValue>();

/** @throws JsonError */
export function parseHeader(bytes: Buffer): JsonValue {
  if (bytes.length > MAX_BYTES) return parseJson(bytes, isInputData);
  // One character per byte: different bytes are different texts.
  const text = bytes.toString("latin1");
  let value = known.get(text);
  if (value === undefined) {
    // Data is read from the bytes later, and what is remembered must not hold the whole body.
    value = parseJson(Buffer.from(bytes), isInputData);
    if (known.size === MAX_KNOWN) known.clear();
    known.set(text, value);
  }
  return value;
}
