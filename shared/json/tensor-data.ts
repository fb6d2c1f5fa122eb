/**
 * A tensor's data as it lies in a document: checked, counted, and not built. An array of JavaScript's
 * values would take up to a hundred times the bytes of its text, and neither datatype nor shape need
 * come before the data. Once they are known, the elements are read straight to where they belong.
 */
import { Lexer } from "./lexer.js";

/** Kinds of elements, to be combined; a number may also be NaN or infinite. */
export const elementKinds = { number: 1, boolean: 2, string: 4, other: 8 } as const;

interface Scanned {
  /** Whether it is an array at all, or a value by itself. */
  readonly isArray: boolean;
  /** Whether arrays stand in the array. */
  readonly isNested: boolean;
  /** Elements that are no arrays, at any depth. */
  readonly count: number;
  readonly kinds: number;
  /** Bytes of all strings in UTF-8. */
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

  /** From the first element on, in row-major order. */
  elements(): Elements {
    return new Elements(this.#bytes, this.#start);
  }

  /** For data that holds only strings: each one's UTF-8 after its length, as a tensor has them. */
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

/** Each call reads the next element, which has to be there and of that kind. */
export class Elements {
  readonly #lexer: Lexer;

  constructor(bytes: Buffer, start: number) {
    this.#lexer = new Lexer(bytes, start);
  }

  number(): number | bigint {
    const lexer = this.#lexer;
    lexer.toElement();
    const code = lexer.peek();
    // Letters begin the literals that are numbers.
    return code > 0x39 ? (lexer.literal() as number) : lexer.number();
  }

  boolean(): boolean {
    this.#lexer.toElement();
    return this.#lexer.literal() === true;
  }
}
