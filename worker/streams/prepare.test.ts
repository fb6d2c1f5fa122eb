import { describe, expect, it } from "vitest";
import { tokensIn } from "./prepare.js";

const delta = (index: number, ...tokens: number[]) => ({ index, text: "", tokens });
const record = (index: number, ...choices: unknown[]) => ({ index, choices });
const logged = (records: readonly unknown[]) => records.map((one) => JSON.stringify(one));

describe("tokensIn", () => {
  it.each<[string, unknown[], number, number[][]]>([
    ["no records", [], 2, [[], []]],
    ["one choice", [record(0, delta(0, 5)), record(1, delta(0, 0)), record(2, delta(0, 7))], 1, [[5, 0, 7]]],
    [
      "several, one of which has ended",
      [record(0, delta(0, 5), delta(1, 6)), record(1, delta(1, 7))],
      2,
      [[5], [6, 7]],
    ],
    ["a record that only ends a choice", [record(0, delta(0, 5)), record(1, delta(0))], 1, [[5]]],
  ])("reads %s", (_, records, choices, expected) => {
    expect(tokensIn(logged(records), choices)).toEqual(expected);
  });

  it.each<[string, unknown]>([
    ["no object", 7],
    ["nothing", null],
    ["no choices", { index: 0 }],
    ["a choice that the request does not have", record(0, delta(1, 5))],
    ["a choice without an index", record(0, { tokens: [1] })],
    ["no choice", record(0, null)],
    ["no tokens", record(0, { index: 0 })],
    ["what is no token", record(0, { index: 0, tokens: ["5"] })],
    ["a token below 0", record(0, delta(0, -1))],
    ["half a token", record(0, delta(0, 0.5))],
  ])("refuses %s", (_, one) => {
    expect(() => tokensIn(logged([one]), 1)).toThrow();
  });

  it("refuses what is no JSON", () => {
    expect(() => tokensIn(["{"], 1)).toThrow(SyntaxError);
  });
});
