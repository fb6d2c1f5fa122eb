/**
 * Reads the value of a scalar or enum field from its tokens, with protobuf's ranges and error
 * texts.
 */
import type { Uint64 } from "#shared/model/config.js";
import type { Enum, Scalar } from "./message.js";
import type { Token, Tokenizer } from "./tokenizer.js";

export type ScalarValue = string | boolean | Uint64;

/** Throws a LoadError about a token; the parser adds the field. */
export type Fail = (token: Token, message: string) => never;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const safe = BigInt(Number.MAX_SAFE_INTEGER);
/**
 * int64 ends at the last whole number that is exact in a double: no dimension or version is larger.
 */
const ranges = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
  int64: [-safe, safe],
  uint64: [0n, 2n ** 64n - 1n],
} as const;

/**
 * Reads the value and moves past its tokens.
 * @returns a bigint only for an integer beyond 2^53 - 1
 */
export function readScalar(tokens: Tokenizer, type: Scalar | Enum, fail: Fail): ScalarValue {
  if (typeof type === "object") return readEnum(tokens, type, fail);
  switch (type) {
    case "string":
      return readString(tokens, fail);
    case "bool":
      return readBool(tokens, fail);
    case "float":
      return singlePrecision(readDouble(tokens, fail));
    case "double":
      return readDouble(tokens, fail);
    default:
      return readInteger(tokens, ranges[type], fail);
  }
}

function readString(tokens: Tokenizer, fail: Fail): string {
  const first = tokens.current;
  if (first.kind !== "string") fail(first, `Expected string, got: ${quoted(first)}`);
  const parts: string[] = [];
  while (tokens.current.kind === "string") parts.push(tokens.next().bytes);
  try {
    return utf8.decode(Buffer.from(parts.join(""), "latin1"));
  } catch {
    return fail(first, "String contains invalid UTF-8 data");
  }
}

function readBool(tokens: Tokenizer, fail: Fail): boolean {
  const { current } = tokens;
  if (current.kind === "integer") return readInteger(tokens, [0n, 1n], fail) === 1;
  if (current.kind !== "identifier") fail(current, `Expected identifier, got: ${quoted(current)}`);
  const { text } = tokens.next();
  if (["true", "True", "t"].includes(text)) return true;
  if (["false", "False", "f"].includes(text)) return false;
  return fail(current, `Invalid value for boolean field. Value: "${text}"`);
}

function readEnum(tokens: Tokenizer, { values }: Enum, fail: Fail): string {
  const { current } = tokens;
  if (current.kind === "identifier") {
    if (!values.includes(current.text)) fail(current, `Unknown enumeration value of "${quoted(current)}"`);
    return tokens.next().text;
  }
  if (current.kind !== "integer" && current.text !== "-") {
    fail(current, `Expected integer or identifier, got: ${quoted(current)}`);
  }
  const number = Number(readInteger(tokens, ranges.int32, fail));
  return values[number] ?? fail(current, `Unknown enumeration value of "${number}"`);
}

function readInteger(tokens: Tokenizer, [least, most]: readonly [bigint, bigint], fail: Fail): Uint64 {
  const first = tokens.current;
  const negative = least < 0n && first.kind === "symbol" && first.text === "-";
  if (negative) tokens.next();
  const digits = tokens.current;
  if (digits.kind !== "integer") fail(digits, `Expected integer, got: ${quoted(digits)}`);
  const magnitude = parseMagnitude(digits.text);
  const value = magnitude !== undefined && negative ? -magnitude : magnitude;
  if (value === undefined || value < least || value > most) fail(first, `Integer out of range (${quoted(digits)})`);
  tokens.next();
  return value > safe ? value : Number(value);
}

/**
 * @returns undefined for more digits than any integer has, because a bigint of a megabyte of digits
 *   would take too long
 */
function parseMagnitude(text: string): bigint | undefined {
  const octal = /^0[0-7]/.test(text);
  const digits = text.replace(/^0+(?=[0-9])/, "");
  if (digits.length > 24) return undefined;
  return BigInt(octal ? `0o${digits}` : digits);
}

function readDouble(tokens: Tokenizer, fail: Fail): number {
  const negative = tokens.current.kind === "symbol" && tokens.current.text === "-";
  if (negative) tokens.next();
  const { current } = tokens;
  const magnitude = parseDouble(current);
  if (magnitude === undefined) {
    const numeric = current.kind === "integer";
    fail(current, `${numeric ? "Expect a decimal number" : "Expected double"}, got: ${quoted(current)}`);
  }
  tokens.next();
  return negative ? -magnitude : magnitude;
}

/** @returns undefined for a token that is no decimal number */
function parseDouble({ kind, text }: Token): number | undefined {
  if (kind === "float") return Number(text.replace(/[fF]$/, ""));
  if (kind === "integer") return /^0./.test(text) ? undefined : Number(text);
  if (kind !== "identifier") return undefined;
  const word = text.toLowerCase();
  if (word === "inf" || word === "infinity") return Number.POSITIVE_INFINITY;
  return word === "nan" ? Number.NaN : undefined;
}

/**
 * Gives the shortest decimal that is the same 32-bit float: 0.1 is printed as 0.1, and means the
 * same as protobuf's float.
 */
function singlePrecision(value: number): number {
  const float = Math.fround(value);
  for (let digits = 6; digits < 9; digits += 1) {
    const short = Number(float.toPrecision(digits));
    if (Math.fround(short) === float) return short;
  }
  return Number.isFinite(float) ? Number(float.toPrecision(9)) : float;
}

/** The token's text, cut short and safe to print. */
function quoted({ text }: Token): string {
  const shown = Buffer.from(text.slice(0, 64), "latin1").toString("utf8");
  return text.length > 64 ? `${shown}…` : shown;
}
