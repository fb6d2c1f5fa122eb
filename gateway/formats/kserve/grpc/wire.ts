/**
 * Protocol buffers on the wire, as far as inference needs them
 * (https://protobuf.dev/programming-guides/encoding). Bytes stay views of the message, so a large
 * tensor is copied only on its way out.
 */
import { isUtf8 } from "node:buffer";
import { InferenceError } from "#shared/errors.js";

/** How the value of a field lies on the wire. */
export const VARINT = 0;
export const FIXED64 = 1;
export const BYTES = 2;
export const FIXED32 = 5;

/** The upper half of the largest integer that a number holds exactly. */
const HIGHEST_SAFE = 2 ** 21 - 1;

function malformed(): InferenceError {
  return new InferenceError("invalid_argument", "the message is no valid protocol buffer");
}

/** Reads the fields of a message, one after another. */
export class FieldReader {
  /** The number of the field at hand. */
  field = 0;
  /** How its value lies on the wire. */
  wire = VARINT;
  readonly #bytes: Buffer;
  #at = 0;
  /** The two halves of the last varint. */
  #low = 0;
  #high = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /**
   * Goes to the next field. The caller has read or skipped the value of the field before.
   * @returns false at the end of the message
   * @throws InferenceError if the bytes are no protocol buffer, as all methods do
   */
  next(): boolean {
    if (this.#at === this.#bytes.length) return false;
    const tag = this.uint();
    this.field = Math.floor(tag / 8);
    this.wire = tag % 8;
    if (this.field === 0 || tag > 0xff_ff_ff_ff) throw malformed();
    return true;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** Reads a varint as an unsigned number. @throws InferenceError above 2^53 - 1 */
  uint(): number {
    const first = this.#bytes[this.#at];
    if (first !== undefined && first < 0x80) {
      this.#at++;
      return first;
    }
    this.#varint();
    if (this.#high > HIGHEST_SAFE) throw malformed();
    return this.#high * 2 ** 32 + this.#low;
  }

  /** Reads a varint of up to 64 bits, as `low` and `high`. Numbers cost far less than bigints. */
  #varint(): void {
    let low = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#byte();
      low |= (byte & 0x7f) << shift;
      if (byte < 0x80) return this.#read(low, 0);
    }
    const middle = this.#byte();
    low |= (middle & 0x0f) << 28;
    let high = (middle & 0x7f) >> 4;
    if (middle < 0x80) return this.#read(low, high);
    for (let shift = 3; shift < 38; shift += 7) {
      const byte = this.#byte();
      if (shift < 32) high |= (byte & 0x7f) << shift;
      if (byte < 0x80) return this.#read(low, high);
    }
    throw malformed();
  }

  #read(low: number, high: number): void {
    this.#low = low >>> 0;
    this.#high = high >>> 0;
  }

  uint64(): bigint {
    this.#varint();
    return (BigInt(this.#high) << 32n) | BigInt(this.#low);
  }

  int64(): bigint {
    return BigInt.asIntN(64, this.uint64());
  }

  double(): number {
    return this.#take(8).readDoubleLE();
  }

  /** Reads a field of bytes, as a view of the message. */
  bytes(): Buffer {
    if (this.wire !== BYTES) throw malformed();
    return this.#take(this.uint());
  }

  text(): string {
    const bytes = this.bytes();
    if (!isUtf8(bytes)) throw malformed();
    return bytes.toString("utf8");
  }

  message(): FieldReader {
    return new FieldReader(this.bytes());
  }

  /**
   * Reads the integers of a repeated field: all that are packed, or one.
   * @param take gets the lower and the upper 32 bits of each, unsigned
   */
  integers(take: (low: number, high: number) => void): void {
    if (this.wire === VARINT) {
      this.#varint();
      return take(this.#low, this.#high);
    }
    const packed = this.message();
    while (!packed.isAtEnd) {
      packed.#varint();
      take(packed.#low, packed.#high);
    }
  }

  /** Reads the bytes of numbers of a fixed size: all that are packed, or one. */
  fixed(bytes: 4 | 8): Buffer {
    const packed = this.wire === BYTES ? this.bytes() : this.#take(bytes);
    const isOne = this.wire === (bytes === 4 ? FIXED32 : FIXED64);
    if ((this.wire !== BYTES && !isOne) || packed.length % bytes !== 0) throw malformed();
    return packed;
  }

  skip(): void {
    switch (this.wire) {
      case VARINT:
        this.#varint();
        break;
      case FIXED64:
        this.#take(8);
        break;
      case BYTES:
        this.bytes();
        break;
      case FIXED32:
        this.#take(4);
        break;
      default:
        throw malformed();
    }
  }

  /** @throws InferenceError if the value at hand does not lie on the wire in this way */
  expect(wire: number): void {
    if (this.wire !== wire) throw malformed();
  }

  #byte(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw malformed();
    return byte;
  }

  #take(length: number): Buffer {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw malformed();
    const view = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return view;
  }
}

/** Writes a message. Its parts are joined once, at the end. */
export class FieldWriter {
  readonly #parts: Buffer[] = [];
  #length = 0;
  #small = Buffer.allocUnsafe(FIRST_BYTES);
  /** Where the small fields that no part has yet begin and end in `#small`. */
  #from = 0;
  #to = 0;

  bool(field: number, value: boolean): void {
    this.#room(12);
    this.#varint(field * 8 + VARINT);
    this.#varint(value ? 1 : 0);
  }

  /** @param value a safe integer that is not negative */
  int64(field: number, value: number): void {
    this.#room(20);
    this.#varint(field * 8 + VARINT);
    this.#varint(value);
  }

  text(field: number, value: string): void {
    const bytes = Buffer.byteLength(value);
    this.#room(20 + bytes);
    this.#varint(field * 8 + BYTES);
    this.#varint(bytes);
    this.#to += this.#small.write(value, this.#to);
    this.#length += bytes;
  }

  /** @param value may become a part of the message without a copy */
  bytes(field: number, value: Buffer): void {
    this.#room(20);
    this.#varint(field * 8 + BYTES);
    this.#varint(value.length);
    this.#append(value);
  }

  message(field: number, value: FieldWriter): void {
    this.bytes(field, value.finish());
  }

  /** Writes the packed integers of a repeated field; nothing for an empty list. */
  packed(field: number, values: readonly number[]): void {
    if (values.length === 0) return;
    const bytes = values.reduce((sum, value) => sum + varintBytes(value), 0);
    this.#room(20 + bytes);
    this.#varint(field * 8 + BYTES);
    this.#varint(bytes);
    for (const value of values) this.#varint(value);
  }

  finish(): Buffer {
    if (this.#parts.length === 0) return this.#small.subarray(this.#from, this.#to);
    this.#flush();
    return Buffer.concat(this.#parts, this.#length);
  }

  #append(bytes: Buffer): void {
    this.#length += bytes.length;
    if (bytes.length <= COPIED_BYTES) {
      this.#room(bytes.length);
      this.#to += bytes.copy(this.#small, this.#to);
      return;
    }
    this.#flush();
    this.#parts.push(bytes);
  }

  #flush(): void {
    if (this.#to > this.#from) this.#parts.push(this.#small.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }

  #room(bytes: number): void {
    if (this.#small.length - this.#to >= bytes) return;
    this.#flush();
    this.#small = Buffer.allocUnsafe(Math.max(bytes, 2 * this.#small.length));
    this.#from = this.#to = 0;
  }

  #varint(value: number): void {
    let rest = value;
    while (rest > 0x7f) {
      this.#small[this.#to++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
      this.#length++;
    }
    this.#small[this.#to++] = rest;
    this.#length++;
  }
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes++;
  return bytes;
}

/** Enough for the head of a usual answer. */
const FIRST_BYTES = 256;
/** Up to this length a copy costs less than another part of the message. */
const COPIED_BYTES = 4_096;
