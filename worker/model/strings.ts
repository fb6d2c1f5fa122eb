/** BYTES tensors as KServe sends them (each element after its u32 LE length) and as ONNX Runtime for Node takes them (strings, UTF-8). */

/** The gateway has checked that the lengths fit. */
export function decodeStrings(data: Uint8Array): string[] {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const strings: string[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + 4 + bytes.readUInt32LE(at);
    strings.push(bytes.toString("utf8", at + 4, end));
    at = end;
  }
  return strings;
}

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
