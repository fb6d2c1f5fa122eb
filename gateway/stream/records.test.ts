import { expect, it } from "vitest";
import { tokenRecord } from "#shared/contract/generation.js";
import { claimedIndex, recordOfMessage, isFinal, isWellFormed, recordOf, textOf } from "./records.js";

const of = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

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
  expect(recordOfMessage(Buffer.from(of(message)))?.index).toBe(index);
});

it("is final by its own member, and not by what its text says", () => {
  expect(isFinal(of({ index: 1, choices: [], final: true, reason: "finished" }))).toBe(true);
  for (const text of ['"final":true', '{"final":true}', String.raw`\"final\":true`, 'a\\"final":true']) {
    expect(isFinal(of({ index: 1, choices: [{ index: 0, text, tokens: [1] }] }))).toBe(false);
  }
});

it("is whole in shape, or not", () => {
  const logprobs = [{ id: 1, token: "a", bytes: [97], logprob: -1, top: [] }];
  for (const message of [
    { index: 3, choices: [] },
    { index: 3, choices: [{ index: 0, text: "a", tokens: [1] }] },
    { index: 3, choices: [{ index: 1, text: "a", tokens: [1], logprobs, finish_reason: "stop" }] },
  ]) {
    expect(isWellFormed(recordOf(3, of(message)))).toBe(true);
  }
  for (const message of [
    "",
    "nonsense",
    "[]",
    '{"index":3',
    { index: 3 },
    { index: 3, choices: [{}] },
    { index: 4, choices: [] },
    `${of({ index: 3, choices: [{ index: 0, text: "a", tokens: [1] }] })},`,
  ]) {
    expect(isWellFormed(recordOf(3, of(message)))).toBe(false);
  }
});

const characters = [
  "a",
  "é",
  "😀",
  '"',
  "\\",
  "/",
  "\n",
  "\u0000",
  "\u001f",
  "\u007f",
  "\u2028",
  "\ud83d",
  '\\"',
  "{}",
];

it.each([...characters, ...characters.map((one) => `${one}x${one}`), ""])(
  "tells %j without parsing, as JSON",
  (text) => {
    for (const tokens of [[], [0], [1, 20, 300]]) {
      const json = of({ index: 12, choices: [{ index: 0, text, tokens }] });
      expect(recordOf(12, json)).toEqual({ index: 12, json, final: false, plainText: JSON.stringify(text) });
      const long = of({ index: 12, choices: [{ index: 0, text: text.repeat(50_000), tokens }] });
      expect(recordOf(12, long).plainText?.length).toBe(JSON.stringify(text.repeat(50_000)).length);
    }
  },
);

it.each<unknown>([
  { index: 1, choices: [] },
  { index: 1, choices: [{ index: 1, text: "a", tokens: [1] }] },
  { index: 1, choices: [{ index: 0, text: "a", tokens: [1], finish_reason: "stop" }] },
  { index: 1, choices: [{ index: 0, text: "a", tokens: [1], logprobs: [] }] },
  { index: 1, choices: [...Array(2).keys()].map((index) => ({ index, text: "a", tokens: [1] })) },
  { index: 1, choices: [{ index: 0, text: "a", tokens: [1] }], final: true },
  '{"index":1,"choices":[{"index":0,"text":"a"b","tokens":[1]}]}',
  '{"index":1,"choices":[{"index":0,"text":"a\\","tokens":[1]}]}',
  '{"index":1,"choices":[{"index":0,"text":"\\x","tokens":[1]}]}',
  '{"index":1,"choices":[{"index":0,"text":"\\u12g4","tokens":[1]}]}',
  '{"index":1,"choices":[{"index":0,"text":"a\nb","tokens":[1]}]}',
  '{"index":1,"choices":[{"index":0,"text":"a","tokens":[1,]}]}',
  '{"index":01,"choices":[{"index":0,"text":"a","tokens":[1]}]}',
  '{"index":1,"choices":[{"index":0,"text":"a","tokens":[1]}]} ',
  '{"index":1,"choices":[{"index":0,"text":"a","tokens":[1]}]}\n',
])("%j says more than a text, or is no record", (message) => {
  expect(recordOf(1, of(message)).plainText).toBeUndefined();
});

it("takes for a plain text only what is a record", () => {
  let seed = 1;
  const random = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below;
  const whole = of({ index: 12, choices: [{ index: 0, text: 'a"\\é', tokens: [1, 20] }] });
  for (let round = 0; round < 20_000; round++) {
    const at = random(whole.length);
    const wrong =
      whole.slice(0, at) + ['"', "\\", "{", "]", ",", "0", "", "u"][random(8)] + whole.slice(at + random(3));
    const { plainText } = recordOf(12, wrong);
    if (plainText === undefined) continue;
    const { choices } = tokenRecord.parse(JSON.parse(wrong));
    expect(choices).toMatchObject([{ index: 0, text: JSON.parse(plainText) as string }]);
  }
});

it("the text of a record is that of choice 0, whatever else the record says", () => {
  const other = { index: 1, text: "b", tokens: [2] };
  const records = [
    { index: 0, choices: [{ index: 0, text: 'a"\n', tokens: [1] }] },
    { index: 0, choices: [other, { index: 0, text: "a", tokens: [1], finish_reason: "stop" }], final: true },
    { index: 0, choices: [other] },
    { index: 0, choices: [], final: true, error: { code: "internal", message: "x" } },
  ];
  expect(records.map((record) => textOf(recordOf(0, of(record))))).toEqual(['a"\n', "a", "", ""]);
});
