/**
 * The JSON in front of binary tensors, parsed once: the steps of a sequence differ in their tensors, seldom in their headers. Only small ones are remembered, and
 * all are forgotten when there are too many. What is returned is shared, and nobody changes it.
 */
import { parseJson, type JsonValue } from "#shared/json/parse.js";

const MAX_BYTES = 512;
const MAX_KNOWN = 1_024;

const known = new Map<string, JsonValue>();

/** @throws JsonError */
export function parseHeader(bytes: Buffer): JsonValue {
  if (bytes.length > MAX_BYTES) return parseJson(bytes);
  // One character per byte: different bytes are different texts.
  const text = bytes.toString("latin1");
  let value = known.get(text);
  if (value === undefined) {
    value = parseJson(bytes);
    if (known.size === MAX_KNOWN) known.clear();
    known.set(text, value);
  }
  return value;
}
