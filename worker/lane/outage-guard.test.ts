import { describe, expect, it } from "vitest";
import { OutageGuard } from "./outage-guard.js";

describe("OutageGuard", () => {
  /** The guard's answer at `now`, after answered beats at these times, with a lease of 1000 ms. */
  function silenceCounts(beats: number[], now: number): boolean {
    const outageGuard = new OutageGuard(1_000, 0);
    for (const at of beats) outageGuard.answered(at);
    return outageGuard.silenceCounts(now);
  }

  it.each<[string, boolean, number[], number]>([
    ["a new worker need not wait", true, [], 100],
    ["steady beats are trusted", true, [333, 666, 999], 1_000],
    ["two beats that failed are no gap", true, [333, 1_300], 1_400],
    ["silence is not trusted", false, [333, 666, 1_000], 2_001],
    ["after an outage a full lease goes by", false, [333, 666, 1_000, 3_000, 3_333, 3_666], 3_999],
    ["unless it was before the first beat", true, [3_000], 3_100],
    ["and then silence counts again", true, [333, 666, 1_000, 3_000, 3_333, 3_666], 4_000],
  ])("%s", (_, expected, beats, now) => {
    expect(silenceCounts(beats, now)).toBe(expected);
  });
});
