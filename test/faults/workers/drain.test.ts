import { describe, expect, it } from "vitest";
import { experiment } from "../../support/sequences/experiment.js";
import { nth, repeatedly } from "../pace.js";
import { scale, seed } from "../scale.js";
import { expectNoViolation } from "../verdict.js";

const base = {
  seed,
  sequences: scale.sequences,
  steps: scale.steps,
  models: ["chain"],
  clients: scale.clients,
} as const;

describe("SIGTERM to a worker under load", () => {
  it(
    "fails no request, leaves no step to be taken over, and ends with exit code 0",
    async () => {
      const findings = await experiment({
        ...base,
        fleet: { gateways: 2, workers: 3, models: ["chain", "simple"] },
        spreadMs: 8_000,
        breaking: async (fleet) => {
          const exits: (number | null)[] = [];
          await repeatedly(4, 500, async (i) => {
            const worker = nth(fleet.workers, i);
            exits.push((await worker.terminate()).code);
            await worker.start();
          });
          return exits;
        },
      });
      expectNoViolation("drain-worker", findings);
      expect(findings.broke).toEqual([0, 0, 0, 0]);
      expect(findings.numbers.workerEvents["reclaimed"] ?? 0).toBe(0);
      expect(findings.numbers.unknown).toEqual({});
    },
    scale.timeoutMs,
  );
});

describe("SIGTERM to a gateway under load", () => {
  it(
    "fails no request of clients that heed readiness",
    async () => {
      const findings = await experiment({
        ...base,
        // Longer than the load on a busy machine takes to notice the drain. A deployment sets this
        // time for its own balancer.
        fleet: { gateways: 2, workers: 2, models: ["chain", "simple"], env: { BATON_LINGER_MS: "3000" } },
        spreadMs: 8_000,
        balanced: true,
        breaking: async (fleet) => {
          const exits: (number | null)[] = [];
          await repeatedly(2, 800, async (i) => {
            const { member } = nth(fleet.gateways, i);
            exits.push((await member.terminate(30_000)).code);
            await member.start();
          });
          return exits;
        },
      });
      expectNoViolation("drain-gateway", findings);
      expect(findings.broke).toEqual([0, 0]);
      expect(findings.numbers.unknown).toEqual({});
    },
    scale.timeoutMs,
  );
});
