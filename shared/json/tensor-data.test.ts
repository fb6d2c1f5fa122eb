import { describe, expect, it } from "vitest";
import { seededRandom } from "../../test/support/fleet/random.js";
import { JsonError } from "./error.js";
import { parseJson, type JsonObject } from "./parse.js";
import { TensorData } from "./tensor-data.js";

/** Parses `text` as `data`, in a document with members before and after. */
function dataOf(text: string): TensorData {
  const isData = (name: string, depth: number): boolean => depth === 1 && name === "data";
  const { data } = parseJson(Buffer.from(`{"ü":[1],"data": ${text} , "after":{"data":[1]}}`), isData) as JsonObject;
  if (!(data instanceof TensorData)) throw new Error("data was built");
  return data;
}

function refusal(text: string): string {
  try {
    dataOf(text);
  } catch (error) {
    if (error instanceof JsonError) return error.reason;
    throw error;
  }
  return "accepted";
}

function numbers(data: TensorData): (number | bigint)[] {
  const elements = data.elements();
  return Array.from({ length: data.count }, () => elements.number());
}

describe("a tensor's data", () => {
  it.each<[text: string, values: (number | bigint)[]]>([
    ["[]", []],
    ["[[],[ ],[[]]]", []],
    ["[1,2,3]", [1, 2, 3]],
    ["[[1,[2]],[[[3]]],4]", [1, 2, 3, 4]],
    [" [ [ 1 , -0 ] , [ 2.5e1 ] ] ", [1, -0, 25]],
    ["[9007199254740993,-9223372036854775808,18446744073709551615]", [2n ** 53n + 1n, -(2n ** 63n), 2n ** 64n - 1n]],
    ["[NaN,Infinity,-Infinity,Inf]", [Number.NaN, Infinity, -Infinity, Infinity]],
    ["7", [7]],
  ])("is read in order: %s", (text, values) => {
    const data = dataOf(text);
    expect(data.count).toBe(values.length);
    expect(data.holdsOnly("number")).toBe(true);
    expect(numbers(data)).toEqual(values);
  });

  it("is the number that JavaScript makes of the text", () => {
    const texts = ["0.1", "123456.789e-3", "4.35", "0.000001", "1e22", "1e23", "9007199254740991e3", "5e-324"];
    const random = seededRandom(1);
    for (let i = 0; i < 20_000; i++) {
      const double = (random.unit() - 0.5) * 10 ** random.between(-30, 30);
      texts.push(String(double), double.toFixed(3), String(Math.fround(double)), double.toExponential(5));
    }
    const data = dataOf(`[${texts.join(",")}]`);
    expect(numbers(data).map(Number)).toEqual(texts.map(Number));
  });

  it("has booleans and strings", () => {
    const booleans = dataOf("[[true],[false,true]]");
    const elements = booleans.elements();
    expect([booleans.count, booleans.holdsOnly("boolean")]).toEqual([3, true]);
    expect([elements.boolean(), elements.boolean(), elements.boolean()]).toEqual([true, false, true]);
    const texts = ["", "a", "ü", "😀", '"\\/', "\n\u0000", "ab\u20ac"];
    const escaped = JSON.stringify(texts).replace(
      /[^ -~]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
    for (const text of [JSON.stringify(texts), escaped]) {
      const strings = dataOf(text);
      expect([strings.count, strings.holdsOnly("string")]).toEqual([texts.length, true]);
      const bytes = Buffer.alloc(4 * strings.count + strings.stringBytes);
      strings.writeStrings(bytes);
      const read: string[] = [];
      for (let at = 0; at < bytes.length; at += 4 + bytes.readUInt32LE(at)) {
        read.push(bytes.toString("utf8", at + 4, at + 4 + bytes.readUInt32LE(at)));
      }
      expect(read).toEqual(texts);
    }
  });

  it.each([
    ["[1,true]", ["number", "boolean"]],
    ['["a",null]', ["string"]],
    ["[{}]", []],
  ])("says that it is mixed: %s", (text) => {
    const data = dataOf(text);
    for (const kind of ["number", "boolean", "string"] as const) expect(data.holdsOnly(kind)).toBe(false);
  });

  it("tells nested from flat, and an array from a value", () => {
    expect([dataOf("[1]").isNested, dataOf("[[]]").isNested]).toEqual([false, true]);
    expect([dataOf("[]").isArray, dataOf("{}").isArray, dataOf("1").isArray]).toEqual([true, false, false]);
  });

  it.each([
    ["[1,]", "Invalid value"],
    ["[,1]", "Invalid value"],
    ["[[1]", "Missing a comma or ] after an array element"],
    ["[1 2]", "Missing a comma or ] after an array element"],
    ["[01]", "Invalid value"],
    ["[1e999]", "Number too big to be stored in double"],
    [`[${"9".repeat(400)}]`, "Number too big to be stored in double"],
    ["[1.]", "Miss fraction part in number"],
    ['["\\x"]', "Invalid escape character in string"],
    ['["\\ud800"]', "The surrogate pair in string is invalid"],
    ["[".repeat(100), "JSON nesting depth exceeds maximum allowed limit (100)"],
    [`${"[".repeat(99)}1${"]".repeat(99)}`, "accepted"],
  ])("is refused as any other: %s", (text, reason) => {
    expect(refusal(text)).toBe(reason);
  });

  it("may be of any length, but for objects, which are no tensor's data", () => {
    const list = (count: number, value: string): string => `[${Array.from({ length: count }, () => value).join(",")}]`;
    for (const value of ["0", "[0]", "[]", "true", '"a"']) expect(refusal(list(500_000, value))).toBe("accepted");
    expect(refusal(list(500_000, "{}"))).toBe("More arrays and objects than the limit of 20000");
  });
});
