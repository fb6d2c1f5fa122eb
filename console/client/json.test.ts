import { describe, expect, it } from "vitest";
import { parseJson, printJson } from "./json.js";

describe("parseJson", () => {
  it("keeps every integer, and rounds other numbers only", () => {
    const text = '{"a":18446744073709551615,"b":42,"c":-9007199254740993,"d":1.5,"e":"18446744073709551615","f":1e300}';
    expect(parseJson(text)).toEqual({
      a: 18_446_744_073_709_551_615n,
      b: 42,
      c: -9_007_199_254_740_993n,
      d: 1.5,
      e: "18446744073709551615",
      f: 1e300,
    });
  });

  it("throws for a text that is no JSON", () => expect(() => parseJson("<html>")).toThrow(SyntaxError));
});

describe("printJson", () => {
  it("is the inverse", () => {
    const text = '{"a":18446744073709551615,"b":[1,"2"]}';
    expect(printJson(parseJson(text))).toBe(text);
  });
});
