import { describe, expect, it } from "vitest";
import { experiment } from "../../support/sequences/experiment.js";
import { nth, repeatedly } from "../pace.js";
import { scale, seed } from "../scale.js";
import { expectNoViolation } from "../verdict.js";

describe("workers killed with SIGKILL under load", () => {
  it(
    "are replaced, and every output and every final state is exact",
    async () => {
      const findings = await experiment({
        seed,
        fleet: { gateways: 2, workers: scale.workers, models: ["chain", "simple"] },
        sequences: scale.sequences,
        steps: scale.steps,
        models: ["chain"],
        clients: scale.clients,
        spreadMs: scale.workerKills * 1_500,
        breaking: (fleet) => repeatedly(scale.workerKills, 400, (i) => nth(fleet.workers, i).restart()),
      });
      expectNoViolation("worker-killed", findings);
      expect(findings.numbers.workerLives).toBe(scale.workers + scale.workerKills);
    },
    scale.timeoutMs,
  );
});
