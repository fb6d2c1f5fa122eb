import { describe, expect, it } from "vitest";
import { experiment } from "../../support/sequences/experiment.js";
import { repeatedly } from "../pace.js";
import { scale, seed } from "../scale.js";
import { expectNoViolation } from "../verdict.js";

const CLIENTS = 100;

describe("the pause after a SIGKILL", () => {
  it(
    "is felt by clients whose step the dead worker held; its length is printed (goal: lease + 200 ms)",
    async () => {
      const leaseMs = 1_000;
      const findings = await experiment({
        seed,
        fleet: { gateways: 1, workers: 3, models: ["chain", "simple"], leaseMs },
        sequences: CLIENTS,
        steps: 20,
        models: ["chain"],
        clients: CLIENTS,
        bursts: 0,
        spreadMs: 6_000,
        breaking: (fleet) => repeatedly(1, 2_000, async () => fleet.workers[0]?.kill()),
      });
      expectNoViolation("pause", findings);
      expect(findings.numbers.unknown).toEqual({});
      console.log(`longest client pause ${findings.numbers.load.maxMs} ms, lease ${leaseMs} ms`);
    },
    scale.timeoutMs,
  );
});
