import { describe, expect, it } from "vitest";
import { compareIds, isDigitText, readId, sequencePath } from "./sequence-id.js";

describe("the id of a sequence", () => {
  it("is an integer if it is digits, and the model's ids are no texts", () => {
    expect([readId("42", false), readId("42", true), readId("a", false)]).toEqual([42, "42", "a"]);
    expect(readId("18446744073709551615", false)).toBe(18_446_744_073_709_551_615n);
  });

  it("is marked in a path if its digits are a text", () => {
    expect([isDigitText("42"), isDigitText(42), isDigitText("a")]).toEqual([true, false, false]);
    expect(sequencePath("m", "42", true, "/fork")).toBe("/v2/models/m/sequences/42/fork?type=string");
    expect(sequencePath("m", "a/b?c", false)).toBe("/v2/models/m/sequences/a%2Fb%3Fc");
  });

  it("has its place in a list: integers by their size, then texts", () => {
    const ids = ["b", 10, 18_446_744_073_709_551_615n, "a", 9];
    expect(ids.sort(compareIds)).toEqual([9, 10, 18_446_744_073_709_551_615n, "a", "b"]);
  });
});
