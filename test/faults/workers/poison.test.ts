import { describe, expect, it } from "vitest";
import { experiment } from "../../support/sequences/experiment.js";
import { scale, seed } from "../scale.js";
import { expectNoViolation } from "../verdict.js";

/** A request runs once in company, then alone as often as the poison policy allows. */
const RUNS_ALONE = 3;
const PILLS = 2;

describe("a request that crashes the process that runs it", () => {
  it(
    "is set aside after one run in company and three alone; its neighbours get their answers",
    async () => {
      const findings = await experiment({
        seed,
        fleet: { gateways: 1, workers: 2, models: ["pill", "simple"] },
        sequences: 24,
        steps: 12,
        models: ["pill"],
        poison: PILLS,
        spreadMs: 6_000,
        breaking: () => Promise.resolve(),
      });
      expectNoViolation("poison", findings);
      // Each pill crashes three processes alone and one in company, which both pills may share.
      const crashes = findings.numbers.workerEvents["worker process died"];
      expect([RUNS_ALONE * PILLS + 1, RUNS_ALONE * PILLS + PILLS]).toContain(crashes);
      expect(findings.numbers.workerEvents["request set aside"]).toBe(PILLS);
      // Neighbours may have to wait; no neighbour is refused or cut off.
      const told = Object.keys(findings.numbers.unknown);
      expect(told.filter((why) => !why.startsWith("no answer"))).toEqual([]);
      expect(findings.numbers.workerLives).toBe(2);
    },
    scale.timeoutMs,
  );
});
