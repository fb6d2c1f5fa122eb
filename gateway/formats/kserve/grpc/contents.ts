/**
 * The explicit contents of a tensor (InferTensorContents) as raw bytes. Each datatype has one field
 * there; the 16-bit floats have none, and come as raw bytes alone.
 */
import type { Datatype } from "#shared/model/datatype.js";
import { InferenceError } from "#shared/errors.js";
import { FieldReader } from "./wire.js";

/** The kinds of contents by their field. */
const FIELDS = ["", "BOOL", "INT32", "INT64", "UINT32", "UINT64", "FP32", "FP64", "BYTES"] as const;

/** The field of each datatype. Small integers share the fields of the 32-bit ones. */
const fieldOf: Readonly<Partial<Record<Datatype, number>>> = {
  BOOL: 1,
  INT8: 2,
  INT16: 2,
  INT32: 2,
  INT64: 3,
  UINT8: 4,
  UINT16: 4,
  UINT32: 4,
  UINT64: 5,
  FP32: 6,
  FP64: 7,
  BYTES: 8,
};

/** Where the contents come from, for refusals. */
interface Whose {
  readonly input: string;
  readonly model: string;
}

/** How many bytes contents may become: one byte of a message can make eight. */
interface Room {
  /** Of all inputs of the request. */
  readonly most: number;
  /** What earlier inputs have left of it. */
  readonly left: number;
}

/**
 * Turns the pieces of contents into raw bytes.
 * @returns undefined if the pieces hold no element
 * @throws InferenceError in Triton's words
 */
export function rawContents(
  pieces: readonly Buffer[],
  datatype: Datatype,
  { input, model }: Whose,
  room: Room,
): Buffer | undefined {
  const wanted = fieldOf[datatype];
  const grown = new Grown(room, input);
  let isThere = false;
  for (const piece of pieces) {
    const reader = new FieldReader(piece);
    while (reader.next()) {
      const { field } = reader;
      if (field >= FIELDS.length) {
        reader.skip();
        continue;
      }
      if (field !== wanted) {
        throw unexpected(input, model, ` of type '${FIELDS[field] ?? ""}', expected datatype '${datatype}'`);
      }
      isThere = true;
      readElements(reader, datatype, grown);
    }
  }
  return isThere ? grown.bytes() : undefined;
}

function unexpected(input: string, model: string, more: string): InferenceError {
  const text = `unexpected explicit tensor data for input tensor '${input}' for model '${model}'${more}`;
  return new InferenceError("invalid_argument", text);
}

function readElements(reader: FieldReader, datatype: Datatype, into: Grown): void {
  switch (datatype) {
    case "BOOL":
      return reader.integers((low, high) => into.integer(low === 0 && high === 0 ? 0 : 1, 0, 1));
    case "INT8":
    case "UINT8":
      return reader.integers((low, high) => into.integer(low, high, 1));
    case "INT16":
    case "UINT16":
      return reader.integers((low, high) => into.integer(low, high, 2));
    case "INT32":
    case "UINT32":
      return reader.integers((low, high) => into.integer(low, high, 4));
    case "INT64":
    case "UINT64":
      return reader.integers((low, high) => into.integer(low, high, 8));
    case "FP32":
      return into.append(reader.fixed(4));
    case "FP64":
      return into.append(reader.fixed(8));
    case "BYTES": {
      const element = reader.bytes();
      into.integer(element.length, 0, 4);
      return into.append(element);
    }
    case "FP16":
    case "BF16":
      throw new TypeError(`there are no explicit contents of ${datatype}`);
  }
}

/** Bytes that grow as elements come. */
class Grown {
  readonly #limit: Room;
  readonly #input: string;
  #bytes: Buffer = Buffer.alloc(0);
  #length = 0;

  constructor(room: Room, input: string) {
    this.#limit = room;
    this.#input = input;
  }

  /** Appends the lowest bytes of an integer of two halves, little-endian. */
  integer(low: number, high: number, bytes: 1 | 2 | 4 | 8): void {
    this.#room(bytes);
    if (bytes === 1) this.#bytes[this.#length] = low;
    else if (bytes === 2) this.#bytes.writeUInt16LE(low & 0xffff, this.#length);
    else this.#bytes.writeUInt32LE(low, this.#length);
    if (bytes === 8) this.#bytes.writeUInt32LE(high, this.#length + 4);
    this.#length += bytes;
  }

  append(bytes: Buffer): void {
    // The only piece of a tensor needs no copy.
    if (this.#length === 0 && this.#bytes.length === 0 && bytes.length <= this.#limit.left) this.#bytes = bytes;
    else {
      this.#room(bytes.length);
      bytes.copy(this.#bytes, this.#length);
    }
    this.#length += bytes.length;
  }

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #room(bytes: number): void {
    const needed = this.#length + bytes;
    const { most, left } = this.#limit;
    if (needed > left) {
      const text = `with input '${this.#input}', explicit contents are larger than the limit of ${most} bytes`;
      throw new InferenceError("payload_too_large", text);
    }
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.min(left, Math.max(64, 2 * needed)));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}
