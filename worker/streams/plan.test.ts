import { describe, expect, it } from "vitest";
import { ALONE_TURN_MS, MAX_ASKED, MAX_LAG, mayAskAhead, nextMove, slotsFor, type LoopFacts } from "./plan.js";

const idle: LoopFacts = { asked: 0, generating: 0, suspected: 0, aloneMs: 0, lag: 0 };

describe("nextMove", () => {
  it.each<[what: string, move: string, facts: Partial<LoopFacts>]>([
    ["has nothing to do", "wait-for-work", {}],
    ["has nothing to do while Redis takes the last records", "wait-for-work", { lag: MAX_LAG }],
    ["asks for streams that the engine has", "ask", { generating: 1 }],
    ["asks while Redis keeps up", "ask", { generating: 1, lag: MAX_LAG - 1 }],
    ["pauses when Redis falls behind", "wait-for-redis", { generating: 1, lag: MAX_LAG }],
    ["hears what it has asked for before anything else", "hear", { asked: 1, generating: 1, suspected: 1 }],
    ["hears what was asked for streams that have left", "hear", { asked: 1 }],
    ["runs a suspected stream first", "run-alone", { generating: 1, suspected: 1, lag: MAX_LAG }],
    ["lets the others have a turn between", "ask", { generating: 1, suspected: 1, aloneMs: ALONE_TURN_MS }],
    ["goes on alone where there are no others", "run-alone", { suspected: 1, aloneMs: ALONE_TURN_MS }],
  ])("%s", (_, move, facts) => {
    expect(nextMove({ ...idle, ...facts })).toBe(move);
  });
});

describe("mayAskAhead", () => {
  it.each<[what: string, may: boolean, facts: Partial<LoopFacts>]>([
    ["for streams that run on", true, { generating: 1, asked: 1 }],
    ["not for an empty engine", false, { asked: 1 }],
    ["not while a suspected stream waits for the engine to be free", false, { generating: 1, suspected: 1, asked: 1 }],
    ["not further than the limit", false, { generating: 1, asked: MAX_ASKED }],
    ["not past what may wait for Redis", false, { generating: 1, asked: 1, lag: MAX_LAG - 1 }],
  ])("%s", (_, may, facts) => {
    expect(mayAskAhead({ ...idle, ...facts })).toBe(may);
  });
});

it("has room for as many streams of others again as for new ones", () => {
  expect([slotsFor("fresh", 8), slotsFor("suspect", 8)]).toEqual([8, 16]);
});
