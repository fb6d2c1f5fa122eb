/**
 * A tensor's data in a JSON document: checked and counted, but not built. An array of JavaScript
 * values would take up to a hundred times the bytes of its text. The datatype and the shape may
 * come after the data. Once both are known, the elements go straight to their places in the tensor.
 */
import { Lexer } from "./lexer.js";

/** Kinds of elements, as bits of a set. A number may also be NaN or infinite. */
export const elementKinds = { number: 1, boolean: 2, string: 4, other: 8 } as const;

interface Scanned {
  /** Whether the data is an array; otherwise a single value. */
  readonly isArray: boolean;
  /** Whether the array holds arrays. */
  readonly isNested: boolean;
  /** The number of elements at any depth, without the arrays. */
  readonly count: number;
  /** The kinds of all elements: a set of `elementKinds`. */
  readonly kinds: number;
  /** The length of all strings together, in UTF-8 bytes. */
  readonly stringBytes: number;
}

export class TensorData implements Scanned {
  readonly isArray: boolean;
  readonly isNested: boolean;
  readonly count: number;
  readonly kinds: number;
  readonly stringBytes: number;
  readonly #bytes: Buffer;
  readonly #start: number;

  constructor(bytes: Buffer, start: number, scanned: Scanned) {
    this.#bytes = bytes;
    this.#start = start;
    this.isArray = scanned.isArray;
    this.isNested = scanned.isNested;
    this.count = scanned.count;
    this.kinds = scanned.kinds;
    this.stringBytes = scanned.stringBytes;
  }

  /** Whether null or an object is among the elements. */
  get holdsOther(): boolean {
    return (this.kinds & elementKinds.other) !== 0;
  }

  holdsOnly(kind: keyof typeof elementKinds): boolean {
    return (this.kinds & ~elementKinds[kind]) === 0;
  }

  /** A reader of the elements, in row-major order. */
  elements(): Elements {
    return new Elements(this.#bytes, this.#start);
  }

  /**
   * Writes the elements of a BYTES tensor: each string's UTF-8 after its u32 LE length. The data
   * must hold only strings.
   * @param target has `stringBytes` bytes, and 4 more for each string
   */
  writeStrings(target: Buffer): void {
    const lexer = new Lexer(this.#bytes, this.#start);
    let offset = 0;
    for (let index = 0; index < this.count; index++) {
      lexer.toElement();
      const length = lexer.copyString(target, offset + 4);
      target.writeUInt32LE(length, offset);
      offset += 4 + length;
    }
  }
}

/**
 * Reads elements in order. Each call reads the next element, which must exist and have that kind.
 */
export class Elements {
  readonly #lexer: Lexer;

  constructor(bytes: Buffer, start: number) {
    this.#lexer = new Lexer(bytes, start);
  }

  number(): number | bigint {
    const lexer = this.#lexer;
    lexer.toElement();
    const code = lexer.peek();
    // NaN and Infinity begin with a letter, and all letters come after the digits.
    return code > 0x39 ? (lexer.literal() as number) : lexer.number();
  }

  boolean(): boolean {
    this.#lexer.toElement();
    return this.#lexer.literal() === true;
  }

  string(): string {
    this.#lexer.toElement();
    return this.#lexer.string();
  }
}
