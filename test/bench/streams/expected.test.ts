import { describe, expect, it } from "vitest";
import type { StreamEvent } from "./events.js";
import { expectedOf, faultOf } from "./expected.js";
import { Vocabulary } from "./vocabulary.js";

/** "Ã" and "©" stand for the two bytes of "é", and "Ġ" stands for a space. */
const vocabulary = new Vocabulary({
  added_tokens: [{ id: 0 }],
  model: { vocab: { "<s>": 0, a: 1, Ġb: 2, Ã: 3, "©": 4 } },
});
const expected = expectedOf(vocabulary, [1, 3, 4, 2]);

function said(...events: [index: number, text: string, finish?: string][]) {
  return {
    done: true,
    events: events.map(([index, text, finish = null]): StreamEvent => ({ index, text, finish, at: 0 })),
  };
}

const right: [index: number, text: string, finish?: string][] = [
  [0, "a"],
  [2, "é"],
  [3, " b", "length"],
];

describe("Vocabulary", () => {
  it("spells tokens, and specials as nothing", () => {
    expect(vocabulary.textOf([0, 1, 3, 4, 2])).toBe("aé b");
    expect(vocabulary.plain).toEqual([1, 2]);
  });
});

describe("faultOf", () => {
  it("finds nothing where parts of a character come as one event, each with its own, or with the next token", () => {
    expect(faultOf(said(...right), expected)).toBeUndefined();
    expect(faultOf(said([0, "a"], [1, ""], [2, "é"], [3, " b", "length"]), expected)).toBeUndefined();
    expect(faultOf(said([0, "a"], [3, "é b", "length"]), expected)).toBeUndefined();
  });

  it.each<[string, ReturnType<typeof said>, string]>([
    ["another's text beside its own", said([0, "aé"], [3, " b", "length"]), 'token 0 says "aé"'],
    ["a gap", said([2, "é"], [3, " b", "length"]), "index 2 came where 0 was due"],
    ["a token twice", said([0, "a"], [0, "a"], ...right.slice(1)), "index 0 came where"],
    ["another token", said([0, "b"], ...right.slice(1)), 'token 0 says "b"'],
    ["another text in between", said([0, "a"], [2, "è"], [3, " b", "length"]), "the whole text"],
    ["an early end", said([0, "a", "length"], ...right.slice(1)), "token 0 of 4 came with the ending length"],
    ["another ending", said(...right.slice(0, 2), [3, " b", "stop"]), "token 3 of 4 came with the ending stop"],
    ["too few tokens", said(...right.slice(0, 2)), "3 tokens of 4 came"],
    ["too many tokens", said(...right, [4, "x"]), "5 tokens of 4"],
    ["no [DONE]", { ...said(...right), done: false }, "[DONE]"],
  ])("names %s", (_, answered, fault) => {
    expect(faultOf(answered, expected)).toContain(fault);
  });
});
