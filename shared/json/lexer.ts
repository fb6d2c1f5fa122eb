/**
 * Reads JSON's scalars from bytes of valid UTF-8. Reading from the bytes keeps only one copy of a
 * large document in memory. Skipping a value checks the value as strictly as reading does.
 */
import { JsonError } from "./error.js";

/**
 * How many bytes to decode to text at a time, because each decoding is a call out of JavaScript.
 */
const windowBytes = 16 * 1024;

/**
 * The literals by their first byte: JSON's own, and the numbers that KServe clients write as words.
 */
const literals: ReadonlyMap<number, readonly (readonly [string, null | boolean | number])[]> = new Map([
  [0x74, [["true", true]]],
  [0x66, [["false", false]]],
  [0x6e, [["null", null]]],
  [0x4e, [["NaN", Number.NaN]]],
  [
    0x49,
    [
      ["Infinity", Number.POSITIVE_INFINITY],
      ["Inf", Number.POSITIVE_INFINITY],
    ],
  ],
]);

/** The bytes that may follow a backslash, except `u`: `"`, `\`, `/`, `b`, `f`, `n`, `r` and `t`. */
const plainEscapes: ReadonlySet<number> = new Set([0x22, 0x5c, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74]);

/** The powers of ten that a double holds exactly. */
const exactPowers: readonly number[] = Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`));

export class Lexer {
  /** Index of the next byte to read. */
  at: number;
  /** Length of the last string, in bytes of UTF-8. */
  skippedBytes = 0;
  readonly #bytes: Buffer;
  /** The text from `#windowAt` on, a character for each byte. */
  #window = "";
  #windowAt = 0;
  /** Whether the last string is pure ASCII. */
  #ascii = true;

  constructor(bytes: Buffer, at = 0) {
    this.#bytes = bytes;
    this.at = at;
  }

  get atEnd(): boolean {
    return this.at >= this.#bytes.length;
  }

  /** The next byte; undefined at the end, which fails every comparison. */
  peek(): number {
    return this.#code(this.at);
  }

  /** @throws JsonError always */
  fail(reason: string, at = this.at): never {
    throw new JsonError(reason, at);
  }

  /** Skips whitespace. */
  space(): void {
    const bytes = this.#bytes;
    for (;;) {
      const code = bytes[this.at];
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.at++;
    }
  }

  /** Moves to the next scalar of a valid array, past commas and brackets. */
  toElement(): void {
    const bytes = this.#bytes;
    let { at } = this;
    for (;;) {
      const code = bytes[at] as number;
      if (code > 0x20 && code !== 0x2c && code !== 0x5b && code !== 0x5d) break;
      at++;
    }
    this.at = at;
  }

  /** Reads a literal. */
  literal(): null | boolean | number {
    for (const [word, value] of literals.get(this.peek()) ?? []) {
      const end = this.at + word.length;
      if (end <= this.#bytes.length && this.#text(this.at, end) === word) {
        this.at = end;
        return value;
      }
    }
    return this.fail("Invalid value");
  }

  /** Reads a number: a bigint if a double would round an integer. */
  number(): number | bigint {
    return this.#number(true);
  }

  skipNumber(): void {
    this.#number(false);
  }

  string(): string {
    const from = this.at;
    const plain = this.#toStringEnd();
    const end = this.at;
    if (plain) return this.#decoded(from + 1, end - 1);
    return JSON.parse(this.#decoded(from, end)) as string;
  }

  skipString(): void {
    this.#toStringEnd();
  }

  /**
   * Writes a string in UTF-8 into `target`, which must have room.
   * @returns the number of bytes
   */
  copyString(target: Buffer, offset: number): number {
    const from = this.at + 1;
    if (!this.#toStringEnd()) {
      return target.write(JSON.parse(this.#decoded(from - 1, this.at)) as string, offset);
    }
    return this.#bytes.copy(target, offset, from, this.at - 1);
  }

  /** The byte at an index; undefined beyond the end, which fails every comparison. */
  #code(at: number): number {
    return this.#bytes[at] as number;
  }

  /** The text of an ASCII range. */
  #text(from: number, to: number): string {
    if (from < this.#windowAt || to > this.#windowAt + this.#window.length) {
      this.#windowAt = from;
      this.#window = this.#bytes.toString("latin1", from, Math.max(to, from + windowBytes));
    }
    return this.#window.slice(from - this.#windowAt, to - this.#windowAt);
  }

  #decoded(from: number, to: number): string {
    return this.#ascii ? this.#text(from, to) : this.#bytes.toString("utf8", from, to);
  }

  /**
   * Skips a string.
   * @returns whether the string has no escapes
   */
  #toStringEnd(): boolean {
    const bytes = this.#bytes;
    const from = this.at + 1;
    let at = from;
    let bits = 0;
    // An escape is always longer than the UTF-8 of its character.
    let saved = 0;
    for (;;) {
      const code = bytes[at] as number;
      if (code === 0x22) break;
      if (code === 0x5c) {
        this.at = at;
        const length = this.#escape();
        saved += this.at - at - length;
        at = this.at;
      } else if (code >= 0x20) {
        bits |= code;
        at++;
      } else if (at < bytes.length) this.fail("Invalid encoding in string", at);
      else this.fail("Missing a closing quotation mark in string", at);
    }
    this.at = at + 1;
    this.#ascii = bits < 0x80;
    this.skippedBytes = at - from - saved;
    return saved === 0;
  }

  /**
   * Skips an escape. Refuses half a surrogate pair: it has no UTF-8, and would silently become
   * U+FFFD in a BYTES tensor.
   * @returns the number of bytes in UTF-8
   */
  #escape(): number {
    const letter = this.#code(this.at + 1);
    if (letter !== 0x75) {
      if (!plainEscapes.has(letter)) this.fail("Invalid escape character in string");
      this.at += 2;
      return 1;
    }
    const first = this.#hex();
    if (first < 0xd800 || first > 0xdfff) return first < 0x80 ? 1 : first < 0x800 ? 2 : 3;
    const follows = this.#code(this.at) === 0x5c && this.#code(this.at + 1) === 0x75;
    if (first > 0xdbff || !follows) this.fail("The surrogate pair in string is invalid");
    const second = this.#hex();
    if (second < 0xdc00 || second > 0xdfff) this.fail("The surrogate pair in string is invalid");
    return 4;
  }

  #hex(): number {
    let value = 0;
    for (let at = this.at + 2; at < this.at + 6; at++) {
      const digit = hexDigit(this.#code(at));
      if (digit === -1) this.fail("Incorrect hex digit after \\u escape in string");
      value = value * 16 + digit;
    }
    this.at += 6;
    return value;
  }

  /** @param wanted false: only checks the number, and the result means nothing */
  #number(wanted: boolean): number | bigint {
    const bytes = this.#bytes;
    const start = this.at;
    const negative = bytes[start] === 0x2d;
    const digitsAt = negative ? start + 1 : start;
    let at = digitsAt;
    let code = bytes[at] as number;
    if (negative && code === 0x49) {
      this.at = at;
      return -(this.literal() as number);
    }
    let digits = 0;
    while (code >= 0x30 && code <= 0x39) {
      digits = digits * 10 + (code - 0x30);
      code = bytes[++at] as number;
    }
    const length = at - digitsAt;
    if (length === 0 || (length > 1 && bytes[digitsAt] === 0x30)) this.fail("Invalid value");
    if (code !== 0x2e && code !== 0x65 && code !== 0x45) {
      this.at = at;
      if (!wanted && length <= 308) return 0;
      if (length < 16) return negative ? -digits : digits;
      return this.#longInteger(start, at);
    }
    let exponent = 0;
    if (code === 0x2e) {
      const fractionAt = ++at;
      code = bytes[at] as number;
      while (code >= 0x30 && code <= 0x39) {
        digits = digits * 10 + (code - 0x30);
        code = bytes[++at] as number;
      }
      if (at === fractionAt) this.fail("Miss fraction part in number", at);
      exponent = fractionAt - at;
    }
    let shift = 0;
    if (code === 0x65 || code === 0x45) {
      code = bytes[++at] as number;
      const down = code === 0x2d;
      if (down || code === 0x2b) code = bytes[++at] as number;
      const exponentAt = at;
      while (code >= 0x30 && code <= 0x39) {
        shift = Math.min(shift * 10 + (code - 0x30), 100_000);
        code = bytes[++at] as number;
      }
      if (at === exponentAt) this.fail("Miss exponent in number", at);
      if (down) shift = -shift;
    }
    this.at = at;
    if (!wanted && length + shift <= 308) return 0;
    exponent += shift;
    // Both are exact doubles, so their quotient or product is rounded once, and hence correctly.
    if (digits <= Number.MAX_SAFE_INTEGER && exponent >= -22 && exponent <= 22) {
      const power = exactPowers[Math.abs(exponent)] as number;
      const double = exponent < 0 ? digits / power : digits * power;
      return negative ? -double : double;
    }
    const double = Number(this.#text(start, at));
    if (!Number.isFinite(double)) this.fail("Number too big to be stored in double", start);
    return double;
  }

  /**
   * BigInt's cost grows faster than the number of digits. A finite double has at most 309 digits,
   * so BigInt never receives more.
   */
  #longInteger(start: number, end: number): number | bigint {
    const digits = this.#text(start, end);
    const double = Number(digits);
    if (Number.isSafeInteger(double)) return double;
    if (!Number.isFinite(double)) this.fail("Number too big to be stored in double", start);
    return BigInt(digits);
  }
}

/** @returns the value of a hex digit; -1 for any other byte */
function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
