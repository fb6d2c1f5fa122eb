import { describe, expect, it } from "vitest";
import { firstOfRound, isStalled, isWorthLooking, nextBackoff } from "./reconciler.js";

describe("the rounds of a lane", () => {
  it("come to every busy sequence, however many there are", () => {
    const rounds = [0, 0.26, 0.51, 0.999].map((lot) => firstOfRound(12_001, lot, 4_000));
    expect(rounds).toEqual([0, 4_000, 8_000, 12_000]);
  });

  it("look at busy sequences where one of them has no entry, and else now and then", () => {
    expect([0, 0.5].map((lot) => isWorthLooking(128, 127, lot))).toEqual([true, true]);
    expect([0, 0.5].map((lot) => isWorthLooking(128, 128, lot))).toEqual([true, false]);
    expect([0, 0.5].map((lot) => isWorthLooking(0, 5, lot))).toEqual([false, false]);
  });

  it("look at a sequence whose step has been queued for a while, and at parked steps", () => {
    const at = (entry: string) => isStalled({ entry }, 5_000);
    expect(["", "5001-0", "5000-7", "@"].map(at)).toEqual([false, false, true, true]);
    expect(isStalled(undefined, 5_000)).toBe(false);
  });

  it("begin with the first where all fit into one", () => {
    for (const count of [0, 1, 4_000]) expect(firstOfRound(count, 0.999, 4_000)).toBe(0);
  });
});

describe("how often a worker looks at its lanes", () => {
  it("goes down while others make the rounds, so far and no further, and up again without them", () => {
    let backoff = 1;
    for (let i = 0; i < 20; i++) backoff = nextBackoff(backoff, "taken", 64);
    expect(backoff).toBe(16);
    expect(nextBackoff(backoff, "empty", 64)).toBe(16);
    expect(nextBackoff(backoff, "empty", 2)).toBe(2);
    for (let i = 0; i < 4; i++) backoff = nextBackoff(backoff, "begun", 64);
    expect(backoff).toBe(1);
    expect(nextBackoff(backoff, "begun", 64)).toBe(1);
  });
});
