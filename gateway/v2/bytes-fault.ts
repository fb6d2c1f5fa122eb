import { elementFault } from "#shared/model/strings.js";

/**
 * What is wrong with a BYTES tensor whose length prefixes come from the client. One walk over the bytes that are there: nothing is
 * allocated or repeated by a count or length that the client merely declares.
 */
export function bytesFault(data: Buffer, count: number, input: string, model: string): string | undefined {
  const where = `inference input '${input}' for model '${model}'`;
  let elements = 0;
  for (let at = 0; at < data.length; elements++) {
    const left = data.length - at;
    if (elements === count)
      return `unexpected number of string elements ${elements + 1} for ${where}, expecting ${count}`;
    if (left < 4) {
      return (
        `incomplete string length indicator for ${where}, expecting 4 bytes but only ${left} bytes available. ` +
        "Please make sure the string length indicator is in one buffer."
      );
    }
    const length = data.readUInt32LE(at);
    if (length > left - 4) {
      return `incomplete string data for ${where}, expecting string of length ${length} but only ${left - 4} bytes available.`;
    }
    at += 4 + length;
  }
  return elements === count ? undefined : `expected ${count} string elements for ${where}, got ${elements}`;
}

/** What keeps a BYTES tensor without such faults from reaching an ONNX model as it is. */
export function stringsFault(data: Buffer, input: string, model: string): string | undefined {
  const found = elementFault(data);
  if (found === undefined) return undefined;
  return `string element ${found.index} of inference input '${input}' for model '${model}' ${found.fault}`;
}
