import { describe, expect, it } from "vitest";
import { experiment } from "../../support/sequences/experiment.js";
import { nth, pause, repeatedly } from "../pace.js";
import { scale, seed } from "../scale.js";
import { expectNoViolation } from "../verdict.js";

async function freezing(leaseMs: number, freezeMs: number) {
  return experiment({
    seed,
    fleet: { gateways: 2, workers: scale.workers, models: ["chain", "simple"], leaseMs },
    sequences: scale.sequences,
    steps: scale.steps,
    models: ["chain"],
    clients: scale.clients,
    spreadMs: scale.workerFreezes * (freezeMs + 500),
    breaking: (fleet) =>
      repeatedly(scale.workerFreezes, 400, async (i) => {
        const worker = nth(fleet.workers, i);
        worker.freeze();
        await pause(freezeMs);
        worker.thaw();
      }),
  });
}

describe("a worker frozen past its lease, then thawed", () => {
  it(
    "finds its work taken over, and changes nothing any more",
    async () => {
      const findings = await freezing(1_000, 1_800);
      expectNoViolation("worker-frozen", findings);
      expect(findings.numbers.workerEvents["reclaimed"] ?? 0).toBeGreaterThan(0);
    },
    scale.timeoutMs,
  );
});

describe("a worker frozen for half its lease", () => {
  it(
    "keeps its work: nothing is reclaimed",
    async () => {
      const findings = await freezing(3_000, 1_500);
      expectNoViolation("worker-frozen-briefly", findings);
      expect(findings.numbers.workerEvents["reclaimed"] ?? 0).toBe(0);
    },
    scale.timeoutMs,
  );
});
