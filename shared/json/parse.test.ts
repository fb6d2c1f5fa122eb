import { describe, expect, it } from "vitest";
import { JsonError } from "./error.js";
import { parseJson, type JsonValue } from "./parse.js";
import { printJson } from "./print.js";

const parse = (text: string): JsonValue => parseJson(Buffer.from(text));

function refusal(bytes: string | Buffer): string {
  try {
    parseJson(Buffer.from(bytes as string));
  } catch (error) {
    if (error instanceof JsonError) return `${error.reason} at ${error.position}`;
    throw error;
  }
  return "accepted";
}

describe("parseJson numbers", () => {
  const accepted: [text: string, value: number | bigint][] = [
    ["0", 0],
    ["-0", -0],
    ["-1", -1],
    ["9007199254740991", 9007199254740991],
    ["9007199254740992", 9007199254740992n],
    ["-9007199254740993", -9007199254740993n],
    ["18446744073709551615", 18446744073709551615n],
    ["18446744073709551616", 18446744073709551616n],
    ["-9223372036854775808", -9223372036854775808n],
    ["999999999999999", 999999999999999],
    ["1234567890123456", 1234567890123456],
    ["1.5", 1.5],
    ["-1.5e3", -1500],
    ["1E+2", 100],
    ["1e-400", 0],
    ["1.7976931348623157e308", Number.MAX_VALUE],
    ["NaN", Number.NaN],
    ["Infinity", Infinity],
    ["Inf", Infinity],
    ["-Infinity", -Infinity],
    ["-Inf", -Infinity],
  ];
  it.each(accepted)("reads %s", (text, value) => {
    expect(parse(text)).toBe(value);
    expect(parse(` [ ${text} ] `)).toEqual([value]);
  });

  it.each([
    ["1e999", "Number too big to be stored in double at 0"],
    ["[1,-1e999]", "Number too big to be stored in double at 3"],
    ["9".repeat(400), "Number too big to be stored in double at 0"],
    ["01", "Invalid value at 0"],
    ["-", "Invalid value at 0"],
    ["+1", "Invalid value at 0"],
    [".5", "Invalid value at 0"],
    ["1.", "Miss fraction part in number at 2"],
    ["1e", "Miss exponent in number at 2"],
    ["0x1", "The document root must not be followed by other values at 1"],
    ["-NaN", "Invalid value at 0"],
  ])("refuses %s", (text, reason) => {
    expect(refusal(text)).toBe(reason);
  });
});

describe("parseJson documents", () => {
  it("reads every kind of value", () => {
    const text = String.raw`{"a":[true,false,null,{}],"b":"x\"\\\/\b\f\n\r\té\ud83d\ude00 ü 😀","":[]}`;
    expect(structuredClone(parse(text))).toEqual(JSON.parse(text));
  });

  it.each([
    ["", "The document is empty at 0"],
    ["  ", "The document is empty at 2"],
    ["\u{feff}{}", "Invalid value at 0"],
    ["{} {}", "The document root must not be followed by other values at 3"],
    ["{", "Missing a name for object member at 1"],
    ["{a:1}", "Missing a name for object member at 1"],
    ['{"a" 1}', "Missing a colon after a name of object member at 5"],
    ['{"a":1', "Missing a comma or } after an object member at 6"],
    ['{"a":1,}', "Missing a name for object member at 7"],
    ["[1 2]", "Missing a comma or ] after an array element at 3"],
    ["[1,]", "Invalid value at 3"],
    ["[", "Invalid value at 1"],
    ["nul", "Invalid value at 0"],
    ["'a'", "Invalid value at 0"],
    ['"a', "Missing a closing quotation mark in string at 2"],
    ['"ü\u0001"', "Invalid encoding in string at 3"],
    [String.raw`"\x"`, "Invalid escape character in string at 1"],
    [String.raw`"\u12g4"`, "Incorrect hex digit after \\u escape in string at 1"],
    [String.raw`"\ud800"`, "The surrogate pair in string is invalid at 7"],
    [String.raw`"\udc00"`, "The surrogate pair in string is invalid at 7"],
    [String.raw`"\ud800\u0041"`, "The surrogate pair in string is invalid at 13"],
    ['{"a":1,"b":2,"a":3}', "Duplicate name of object member at 13"],
    [String.raw`{"a":1,"\u0061":3}`, "Duplicate name of object member at 7"],
  ])("refuses %j", (text, reason) => {
    expect(refusal(text)).toBe(reason);
  });

  it("refuses invalid UTF-8 instead of replacing it", () => {
    expect(refusal(Buffer.from([0x22, 0xff, 0x22]))).toBe("The document is not valid UTF-8 at 0");
    expect(refusal(Buffer.from([0x22, 0xc0, 0xaf, 0x22]))).toBe("The document is not valid UTF-8 at 0");
  });

  it("keeps __proto__ and its like as plain data", () => {
    const object = parse('{"__proto__":{"polluted":1},"constructor":{"prototype":2}}') as Record<string, JsonValue>;
    expect(Object.keys(object)).toEqual(["__proto__", "constructor"]);
    expect(Object.getPrototypeOf(object)).toBeNull();
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
    expect(refusal('{"__proto__":1,"__proto__":2}')).toBe("Duplicate name of object member at 15");
  });

  it.each([101, 400_000])("refuses %i levels, of arrays or objects", (levels) => {
    expect(refusal("[".repeat(levels))).toBe("JSON nesting depth exceeds maximum allowed limit (100) at 100");
    expect(refusal('{"a":'.repeat(levels))).toBe("JSON nesting depth exceeds maximum allowed limit (100) at 500");
  });

  it("reads 100 levels and 10 000 members, and no more", () => {
    expect(refusal("[".repeat(100) + "]".repeat(100))).toBe("accepted");
    const members = (count: number): string => `{${Array.from({ length: count }, (_, i) => `"${i}":0`).join(",")}}`;
    expect(refusal(members(10_000))).toBe("accepted");
    expect(refusal(members(10_001))).toMatch(/^More object members than the limit of 10000 at /);
  });

  it("reads 150 000 values, of which 20 000 are arrays or objects, and no more", () => {
    const list = (count: number, value: string): string => `[${Array.from({ length: count }, () => value).join(",")}]`;
    expect(refusal(list(149_999, "0"))).toBe("accepted");
    expect(refusal(list(150_000, "0"))).toBe("More values than the limit of 150000 at 299999");
    expect(refusal(list(30_000_000, "0"))).toBe("More values than the limit of 150000 at 299999");
    expect(refusal(list(19_999, "{}"))).toBe("accepted");
    expect(refusal(list(20_000, "{}"))).toBe("More arrays and objects than the limit of 20000 at 59998");
    expect(refusal(list(10_000, "[[]]"))).toBe("More arrays and objects than the limit of 20000 at 49997");
  });

  it("takes time in proportion to the text", () => {
    const time = (text: string): number => {
      const bytes = Buffer.from(text);
      const begin = performance.now();
      refusal(bytes);
      return performance.now() - begin;
    };
    const hostile = (size: number): string[] => [
      `[${"1,".repeat(size)}1]`,
      `"${String.raw`\n`.repeat(size)}"`,
      `"${"ü".repeat(size)}`,
      "9".repeat(size),
    ];
    hostile(1000).forEach(time);
    for (const text of hostile(500_000)) expect(time(text)).toBeLessThan(1000);
  });
});

describe("printJson", () => {
  it.each([
    [
      { a: 1, b: [true, null, 'x\u0000"ü'], c: undefined, d: [undefined] },
      '{"a":1,"b":[true,null,"x\\u0000\\"ü"],"d":[null]}',
    ],
    [[2n ** 64n - 1n, -(2n ** 63n)], "[18446744073709551615,-9223372036854775808]"],
    [[Number.NaN, Infinity, -Infinity, -0, 1e21, 1e-7], "[NaN,Infinity,-Infinity,-0,1e+21,1e-7]"],
    [{}, "{}"],
    [[], "[]"],
    ["top", '"top"'],
  ])("prints %o", (value, text) => {
    expect(printJson(value)).toBe(text);
  });

  it("gives back what parseJson read", () => {
    const text = '{"__proto__":[18446744073709551615,NaN,-Infinity,-0,0.1,"\\u0001"],"a":{"b":[[]]}}';
    expect(printJson(parse(text))).toBe(text);
  });

  it("prints any depth", () => {
    let value: unknown = 1;
    for (let level = 0; level < 200_000; level++) value = level % 2 === 0 ? [value] : { a: value };
    expect(printJson(value)).toHaveLength(1 + 100_000 * 2 + 100_000 * 6);
  });
});
