import { describe, expect, it } from "vitest";
import { Steadiness } from "./steadiness.js";

describe("Steadiness", () => {
  /** Renewals at these times, a lease of 1000 ms, seen at `now`. */
  function leasesCount(renewals: number[], now: number): boolean {
    const steadiness = new Steadiness(1_000, 0);
    for (const at of renewals) steadiness.renewed(at);
    return steadiness.leasesCount(now);
  }

  it.each<[string, boolean, number[], number]>([
    ["a new worker need not wait", true, [], 100],
    ["steady renewals are trusted", true, [333, 666, 999], 1_000],
    ["two renewals that failed are no gap", true, [333, 1_300], 1_400],
    ["silence is not trusted", false, [333, 666, 1_000], 2_001],
    ["after an outage a full lease goes by", false, [333, 666, 1_000, 3_000, 3_333, 3_666], 3_999],
    ["and then leases count again", true, [333, 666, 1_000, 3_000, 3_333, 3_666], 4_000],
  ])("%s", (_, expected, renewals, now) => {
    expect(leasesCount(renewals, now)).toBe(expected);
  });
});
