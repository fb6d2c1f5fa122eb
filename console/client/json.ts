/** Reads and writes JSON without rounding integers: ids of sequences go up to 2^64-1. */

/** No text of a client can begin with this mark, because nobody knows it before. */
const MARK = `${crypto.randomUUID()}:`;
const NUMBERS_AND_TEXTS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MARKED = new RegExp(`"${MARK}(-?\\d+)"`, "g");

/** @returns the value, with a bigint for each integer beyond 2^53 */
export function parseJson(text: string): unknown {
  // Few answers have a number of so many digits.
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const marked = text.replaceAll(NUMBERS_AND_TEXTS, (part) => (isLong(part) ? `"${MARK}${part}"` : part));
  return JSON.parse(marked, (_, value: unknown) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  );
}

function isLong(part: string): boolean {
  return /^-?\d+$/.test(part) && !Number.isSafeInteger(Number(part));
}

/** @returns the text of a value, in which each bigint is an integer */
export function printJson(value: unknown, indent?: number): string {
  const mark = (_: string, one: unknown): unknown => (typeof one === "bigint" ? `${MARK}${one}` : one);
  return JSON.stringify(value, mark, indent).replaceAll(MARKED, "$1");
}
