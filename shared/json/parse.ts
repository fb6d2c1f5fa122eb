/**
 * JSON as KServe clients write it: 64-bit integers arrive exactly (as bigint where a double would round), bare NaN and Infinity
 * are numbers, and what `JSON.parse` lets through to hurt later (depth, duplicate keys, invalid UTF-8, 1e999) is refused here.
 * One difference is not kept: `1.0` and `1` are the same number. Objects have no prototype, so `__proto__` is plain data.
 */
import { isAscii, isUtf8 } from "node:buffer";

export type JsonValue = null | boolean | number | bigint | string | JsonValue[] | JsonObject;
export interface JsonObject {
  [key: string]: JsonValue;
}

const maxDepth = 100;
const maxMembers = 10_000;

/** `position` is the byte at which the text stopped making sense. */
export class JsonError extends Error {
  override readonly name = "JsonError";
  readonly reason: string;
  readonly position: number;

  constructor(reason: string, position: number) {
    super(`${reason} at ${position}`);
    this.reason = reason;
    this.position = position;
  }
}

/** @throws JsonError */
export function parseJson(bytes: Buffer): JsonValue {
  if (isAscii(bytes)) return new Reader(bytes.toString("latin1")).document();
  if (!isUtf8(bytes)) throw new JsonError("The document is not valid UTF-8", 0);
  return new Reader(bytes.toString("utf8")).document();
}

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

const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

/** charCodeAt beyond the end is NaN, which fails every comparison below: the end of the text needs no check of its own. */
class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): JsonValue {
    this.#space();
    if (this.#at === this.#text.length) this.#fail("The document is empty");
    const value = this.#value(0);
    this.#space();
    if (this.#at < this.#text.length) this.#fail("The document root must not be followed by other values");
    return value;
  }

  #fail(reason: string, at = this.#at): never {
    throw new JsonError(reason, Buffer.byteLength(this.#text.slice(0, at)));
  }

  #space(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.#at++;
    }
  }

  #value(depth: number): JsonValue {
    const code = this.#text.charCodeAt(this.#at);
    if (code === 0x22) return this.#string();
    if (code === 0x7b) return this.#object(depth + 1);
    if (code === 0x5b) return this.#array(depth + 1);
    if (code === 0x2d || (code >= 0x30 && code <= 0x39)) return this.#number();
    return this.#literal(code);
  }

  #literal(code: number): null | boolean | number {
    for (const [word, value] of literals.get(code) ?? []) {
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return value;
      }
    }
    return this.#fail("Invalid value");
  }

  #array(depth: number): JsonValue[] {
    if (depth > maxDepth) this.#fail(`Nesting is deeper than the limit of ${maxDepth}`);
    const items: JsonValue[] = [];
    this.#at++;
    this.#space();
    if (this.#text.charCodeAt(this.#at) === 0x5d) {
      this.#at++;
      return items;
    }
    for (;;) {
      items.push(this.#value(depth));
      this.#space();
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x2c && code !== 0x5d) this.#fail("Missing a comma or ] after an array element");
      this.#at++;
      if (code === 0x5d) return items;
      this.#space();
    }
  }

  #object(depth: number): JsonObject {
    if (depth > maxDepth) this.#fail(`Nesting is deeper than the limit of ${maxDepth}`);
    const object = Object.create(null) as JsonObject;
    let members = 0;
    this.#at++;
    this.#space();
    if (this.#text.charCodeAt(this.#at) === 0x7d) {
      this.#at++;
      return object;
    }
    for (;;) {
      const nameAt = this.#at;
      if (this.#text.charCodeAt(nameAt) !== 0x22) this.#fail("Missing a name for object member");
      const name = this.#string();
      if (name in object) this.#fail("Duplicate name of object member", nameAt);
      if (++members > maxMembers) this.#fail(`More object members than the limit of ${maxMembers}`, nameAt);
      this.#space();
      if (this.#text.charCodeAt(this.#at) !== 0x3a) this.#fail("Missing a colon after a name of object member");
      this.#at++;
      this.#space();
      object[name] = this.#value(depth);
      this.#space();
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x2c && code !== 0x7d) this.#fail("Missing a comma or } after an object member");
      this.#at++;
      if (code === 0x7d) return object;
      this.#space();
    }
  }

  #number(): number | bigint {
    const text = this.#text;
    const start = this.#at;
    const negative = text.charCodeAt(start) === 0x2d;
    let at = negative ? start + 1 : start;
    const digitsAt = at;
    let code = text.charCodeAt(at);
    if (negative && code === 0x49) {
      this.#at = at;
      return -(this.#literal(code) as number);
    }
    let value = 0;
    while (code >= 0x30 && code <= 0x39) {
      value = value * 10 + (code - 0x30);
      code = text.charCodeAt(++at);
    }
    const digits = at - digitsAt;
    if (digits === 0 || (digits > 1 && text.charCodeAt(digitsAt) === 0x30)) this.#fail("Invalid value");
    if (code !== 0x2e && code !== 0x65 && code !== 0x45) {
      this.#at = at;
      if (digits < 16) return negative ? -value : value;
      return this.#longInteger(start, at);
    }
    if (code === 0x2e) {
      const fractionAt = ++at;
      at = this.#skipDigits(at);
      if (at === fractionAt) this.#fail("Miss fraction part in number", at);
      code = text.charCodeAt(at);
    }
    if (code === 0x65 || code === 0x45) {
      code = text.charCodeAt(++at);
      if (code === 0x2b || code === 0x2d) at++;
      const exponentAt = at;
      at = this.#skipDigits(at);
      if (at === exponentAt) this.#fail("Miss exponent in number", at);
    }
    const double = Number(text.slice(start, at));
    if (!Number.isFinite(double)) this.#fail("Number too big to be stored in double", start);
    this.#at = at;
    return double;
  }

  #skipDigits(from: number): number {
    let at = from;
    for (;;) {
      const code = this.#text.charCodeAt(at);
      if (!(code >= 0x30 && code <= 0x39)) return at;
      at++;
    }
  }

  /** A finite double has at most 309 digits, so BigInt, whose cost is not linear, never sees more. */
  #longInteger(start: number, end: number): number | bigint {
    const digits = this.#text.slice(start, end);
    const double = Number(digits);
    if (Number.isSafeInteger(double)) return double;
    if (!Number.isFinite(double)) this.#fail("Number too big to be stored in double", start);
    return BigInt(digits);
  }

  #string(): string {
    const text = this.#text;
    let from = ++this.#at;
    let at = from;
    let parts = "";
    for (;;) {
      const code = text.charCodeAt(at);
      if (code === 0x22) {
        this.#at = at + 1;
        return parts === "" ? text.slice(from, at) : parts + text.slice(from, at);
      }
      if (code === 0x5c) {
        parts += text.slice(from, at);
        this.#at = at;
        parts += this.#escape();
        from = at = this.#at;
      } else if (code >= 0x20) at++;
      else if (at < text.length) this.#fail("Invalid encoding in string", at);
      else this.#fail("Missing a closing quotation mark in string", at);
    }
  }

  /** Half a surrogate pair has no UTF-8: kept, it would silently become U+FFFD in a BYTES tensor. */
  #escape(): string {
    const letter = this.#text.charAt(this.#at + 1);
    if (letter !== "u") {
      const plain = escapes[letter];
      if (plain === undefined) return this.#fail("Invalid escape character in string");
      this.#at += 2;
      return plain;
    }
    const first = this.#hex();
    if (first < 0xd800 || first > 0xdfff) return String.fromCharCode(first);
    if (first > 0xdbff || !this.#text.startsWith("\\u", this.#at))
      this.#fail("The surrogate pair in string is invalid");
    const second = this.#hex();
    if (second < 0xdc00 || second > 0xdfff) this.#fail("The surrogate pair in string is invalid");
    return String.fromCharCode(first, second);
  }

  #hex(): number {
    const digits = this.#text.slice(this.#at + 2, this.#at + 6);
    if (!/^[0-9A-Fa-f]{4}$/.test(digits)) this.#fail("Incorrect hex digit after \\u escape in string");
    this.#at += 6;
    return Number.parseInt(digits, 16);
  }
}
