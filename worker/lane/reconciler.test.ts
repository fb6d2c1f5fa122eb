import { describe, expect, it } from "vitest";
import { firstOfRound } from "./reconciler.js";

describe("the rounds of a lane", () => {
  it("come to every busy sequence, however many there are", () => {
    const rounds = [0, 0.26, 0.51, 0.999].map((lot) => firstOfRound(3_001, lot));
    expect(rounds).toEqual([0, 1_000, 2_000, 3_000]);
  });

  it("begin with the first where all fit into one", () => {
    for (const count of [0, 1, 1_000]) expect(firstOfRound(count, 0.999)).toBe(0);
  });
});
