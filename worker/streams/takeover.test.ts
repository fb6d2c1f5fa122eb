import { describe, expect, it } from "vitest";
import { inTurn } from "./takeover.js";

function turn(next: number, standsSince: number) {
  return { generation: { next }, standsSince };
}

const [older, newer] = [turn(3, 1_000), turn(9, 2_000)];
const fresh = [turn(0, 500), turn(0, 1_500)];

describe("the order of turns", () => {
  it.each([
    ["nobody waits", [], [], []],
    ["the stream that has stood longest goes first", [newer, older], [], [older, newer]],
    ["streams without a token wait for those with some", [...fresh, newer], [], [newer]],
    ["and for their first token here", fresh, [older], []],
    ["then they go as they lie", fresh, [turn(0, 100)], fresh],
  ])("%s", (_, waiting, begun, expected) => {
    expect(inTurn(waiting, begun)).toEqual(expected);
  });
});
