import { expect, it } from "vitest";
import { claimedIndex, isFinal, isRecord } from "./records.js";

const of = (value: unknown): Buffer => Buffer.from(typeof value === "string" ? value : JSON.stringify(value));

it.each<[unknown, number | undefined]>([
  [{ index: 0, choices: [] }, 0],
  [{ index: 999_999_999, choices: [] }, 999_999_999],
  ['{"index":7}', 7],
  [{ index: 1e9, choices: [] }, undefined],
  [{ index: -1, choices: [] }, undefined],
  [{ index: 1.5, choices: [] }, undefined],
  [{ index: "1", choices: [] }, undefined],
  [{ choices: [], index: 1 }, undefined],
  ['{"index":7', undefined],
  ["", undefined],
  ["[]", undefined],
])("a message that says %j claims index %s", (message, index) => {
  expect(claimedIndex(of(message))).toBe(index);
});

it("is final by its own member, and not by what its text says", () => {
  expect(isFinal(of({ index: 1, choices: [], final: true, reason: "finished" }))).toBe(true);
  for (const text of ['"final":true', '{"final":true}', String.raw`\"final\":true`, 'a\\"final":true']) {
    expect(isFinal(of({ index: 1, choices: [{ index: 0, text, tokens: [1] }] }))).toBe(false);
  }
});

it("is a record of that index in shape, or none", () => {
  expect(isRecord(of({ index: 3, choices: [] }), 3)).toBe(true);
  for (const message of [
    "",
    "nonsense",
    "[]",
    '{"index":3',
    { index: 3 },
    { index: 3, choices: [{}] },
    { index: 4, choices: [] },
  ]) {
    expect(isRecord(of(message), 3)).toBe(false);
  }
});
