/** Protobuf messages, field by field, as bytes. */

/** Reads the fields of one protobuf message, one after the other. */
export class WireReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  /**
   * Reads a field. `content` is undefined unless the field has a length: a string or a message.
   * `whole` has the field with its tag and its length.
   */
  next(): { readonly field: number; readonly content: Buffer | undefined; readonly whole: Buffer } {
    const from = this.#at;
    const { field, content } = this.#field();
    return { field, content, whole: this.#bytes.subarray(from, this.#at) };
  }

  #field(): { readonly field: number; readonly content: Buffer | undefined } {
    const tag = this.#varint();
    const field = Math.floor(tag / 8);
    switch (tag % 8) {
      case 0:
        this.#varint();
        return { field, content: undefined };
      case 1:
        this.#take(8);
        return { field, content: undefined };
      case 2:
        return { field, content: this.#take(this.#varint()) };
      case 5:
        this.#take(4);
        return { field, content: undefined };
      default:
        throw new RangeError("not a protobuf message");
    }
  }

  /** Exact for tags and lengths. Larger values only need their end found. */
  #varint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.#bytes.readUInt8(this.#at++);
      value += (byte % 128) * scale;
      if (byte < 128) return value;
    }
  }

  #take(count: number): Buffer {
    const from = this.#at;
    this.#at += count;
    if (this.#at > this.#bytes.length) throw new RangeError("not a protobuf message");
    return this.#bytes.subarray(from, this.#at);
  }
}

/** A field of a message with a length: its tag, its length and its content. */
export function lengthField(field: number, parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([varint(field * 8 + 2), varint(content.length), content]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
  return Buffer.from([...bytes, left]);
}
