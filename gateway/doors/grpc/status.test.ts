import { expect, it } from "vitest";
import { InferenceError } from "#shared/errors.js";
import { statusOf } from "./status.js";

const detailsOf = (text: string): string => statusOf(new InferenceError("invalid_argument", text), "id").details;

it.each([
  ["half a character", "\ud83d"],
  ["the other half", "a\ude00b"],
  ["many characters of several bytes", "é😀\u0000".repeat(5_000)],
  ["a long text with half a character at the cut", `${"x".repeat(4_095)}😀`],
])("a status with %s fits into a header", (_, text) => {
  expect(encodeURI(detailsOf(text)).length).toBeLessThanOrEqual(4_099);
});

it("leaves a usual text as it is", () => {
  expect(detailsOf("wrong: 'ä' 😀")).toBe("wrong: 'ä' 😀");
});
