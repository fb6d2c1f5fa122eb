/**
 * Protobuf's tokenizer for its text format: comments begin with `#`, floats may end in `f`, and a
 * space is required between a number and a name. The text is read as bytes, in latin1, because
 * escapes make bytes and only a whole string must be UTF-8. The tokenizer reads each byte a fixed
 * number of times.
 */
import { LoadError } from "../../thread/load-error.js";

/** Both count from 1; a column is a byte. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface Token extends Position {
  readonly kind: "identifier" | "integer" | "float" | "string" | "symbol" | "end";
  /** The token's source text. */
  readonly text: string;
  /** The bytes of a string in latin1, with its escapes resolved; empty for other kinds. */
  readonly bytes: string;
}

const BOM = "\u00ef\u00bb\u00bf";
const space = /(?:[ \t\v\f\r\n]+|#[^\n]*)*/y;
const identifier = /[A-Za-z_][A-Za-z0-9_]*/y;
const hex = /0[xX][0-9a-fA-F]+/y;
/**
 * Protobuf takes any digit after a leading zero for octal, so `09` is an error and not a decimal.
 */
const octal = /0(?=\d)[0-7]*/y;
const decimal = /(?:\d+(\.\d*)?|(\.\d+))([eE][+-]?\d+)?[fF]?/y;
/** The part of a string up to the next quote, backslash or line end. */
const plain = { "'": /[^'\\\n]*/y, '"': /[^"\\\n]*/y } as const;
const escape =
  /\\(?:([abfnrtv?\\'"])|([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U(00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}))/y;
const simpleEscapes: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

export class Tokenizer {
  /** The token at the parser's place. */
  current: Token;
  private readonly text: string;
  private readonly file: string;
  /** The start of the white space before the next token. */
  private at: number;
  private line = 1;
  private lineStart: number;

  constructor(file: string, source: Uint8Array) {
    this.file = file;
    this.text = Buffer.from(source.buffer, source.byteOffset, source.byteLength).toString("latin1");
    this.at = this.text.startsWith(BOM) ? BOM.length : 0;
    this.lineStart = this.at;
    this.current = this.read();
  }

  /**
   * Moves to the next token.
   * @returns the previous token
   */
  next(): Token {
    const passed = this.current;
    this.current = this.read();
    return passed;
  }

  /** @throws LoadError always */
  fail({ line, column }: Position, message: string): never {
    throw new LoadError(`${this.file}:${line}:${column}: ${message}`);
  }

  private read(): Token {
    this.skipSpace();
    const start = this.at;
    const first = this.text[start];
    if (first === undefined) return this.token("end", start, start);
    if (first === '"' || first === "'") return this.readString(first);
    const name = this.match(identifier, start);
    if (name !== undefined) return this.token("identifier", start, start + name.length);
    if (/\d/.test(first) || (first === "." && /\d/.test(this.text[start + 1] ?? ""))) return this.readNumber();
    if (first < " " || first > "~") this.failAt(start, "Invalid control or non-ascii character in text.");
    return this.token("symbol", start, start + 1);
  }

  private skipSpace(): void {
    const skipped = this.match(space, this.at) ?? "";
    for (let end = skipped.indexOf("\n"); end !== -1; end = skipped.indexOf("\n", end + 1)) {
      this.line += 1;
      this.lineStart = this.at + end + 1;
    }
    this.at += skipped.length;
  }

  private readNumber(): Token {
    const start = this.at;
    const radix = this.match(hex, start);
    const written = radix ?? this.match(octal, start) ?? this.match(decimal, start) ?? "";
    const end = start + written.length;
    const isFloat = radix === undefined && /[.eEfF]/.test(written);
    const after = this.text[end] ?? "";
    if (/^0[xX]/.test(this.text.slice(start, start + 2)) && radix === undefined) {
      this.failAt(start, '"0x" must be followed by hex digits.');
    }
    if (/\d/.test(after)) this.failAt(end, "Numbers starting with leading zero must be in octal.");
    if (/[eE]/.test(after) && /^[\d.]+$/.test(written)) this.failAt(end, '"e" must be followed by exponent.');
    if (/[A-Za-z_]/.test(after)) this.failAt(end, "Need space between number and identifier.");
    if (after === ".") {
      const already = "Already saw decimal point or exponent; can't have another one.";
      this.failAt(end, isFloat ? already : "Hex and octal numbers must be integers.");
    }
    return this.token(isFloat ? "float" : "integer", start, end);
  }

  private readString(quote: '"' | "'"): Token {
    const start = this.at;
    const parts: string[] = [];
    let at = start + 1;
    for (;;) {
      const run = this.match(plain[quote], at) ?? "";
      parts.push(run);
      at += run.length;
      const stop = this.text[at];
      if (stop === quote) break;
      if (stop === undefined) this.failAt(at, "Unexpected end of string.");
      if (stop === "\n") this.failAt(at, "String literals cannot cross line boundaries.");
      const [bytes, end] = this.readEscape(at);
      parts.push(bytes);
      at = end;
    }
    return this.token("string", start, at + 1, parts.join(""));
  }

  /** @returns the bytes that the escape stands for, and the place after the escape */
  private readEscape(start: number): [bytes: string, end: number] {
    escape.lastIndex = start;
    const found = escape.exec(this.text);
    if (found === null) this.failAt(start, "Invalid escape sequence in string literal.");
    const [written, simple, octalDigits, hexDigits, short, long] = found;
    const end = start + written.length;
    if (simple !== undefined) return [simpleEscapes[simple] ?? simple, end];
    if (octalDigits !== undefined) {
      const byte = Number.parseInt(octalDigits, 8);
      if (byte > 0xff) this.failAt(start, "Octal escape sequence is larger than a byte.");
      return [String.fromCharCode(byte), end];
    }
    if (hexDigits !== undefined) return [String.fromCharCode(Number.parseInt(hexDigits, 16)), end];
    const point = Number.parseInt(short ?? long ?? "", 16);
    return point >= 0xd8_00 && point <= 0xdf_ff ? this.readSurrogates(start, end, point) : [utf8(point), end];
  }

  /** Two escapes such as `\ud83d\ude00` are one character; a single half is an error. */
  private readSurrogates(start: number, end: number, high: number): [bytes: string, end: number] {
    const low = /^\\u(d[c-f][0-9a-f]{2})/i.exec(this.text.slice(end, end + 6))?.[1];
    if (high >= 0xdc_00 || low === undefined) this.failAt(start, "Unpaired surrogate in string literal.");
    return [utf8(((high & 0x3_ff) << 10) + (Number.parseInt(low, 16) & 0x3_ff) + 0x1_00_00), end + 6];
  }

  private match(pattern: RegExp, at: number): string | undefined {
    pattern.lastIndex = at;
    return pattern.exec(this.text)?.[0];
  }

  private token(kind: Token["kind"], start: number, end: number, bytes = ""): Token {
    this.at = end;
    return { kind, text: this.text.slice(start, end), bytes, line: this.line, column: start - this.lineStart + 1 };
  }

  private failAt(at: number, message: string): never {
    this.fail({ line: this.line, column: at - this.lineStart + 1 }, message);
  }
}

function utf8(point: number): string {
  return Buffer.from(String.fromCodePoint(point), "utf8").toString("latin1");
}
