import { describe, expect, it } from "vitest";
import { experiment } from "../../support/sequences/experiment.js";
import { nth, repeatedly } from "../pace.js";
import { scale, seed } from "../scale.js";
import { expectNoViolation } from "../verdict.js";

describe("gateways killed with SIGKILL under load", () => {
  it(
    "cost a retry: under its Idempotency-Key each step has one effect and one outcome",
    async () => {
      const findings = await experiment({
        seed,
        fleet: { gateways: 2, workers: scale.workers, models: ["chain", "simple"] },
        sequences: scale.sequences,
        steps: scale.steps,
        models: ["chain"],
        clients: scale.clients,
        spreadMs: scale.gatewayKills * 1_500,
        breaking: (fleet) => repeatedly(scale.gatewayKills, 600, (i) => nth(fleet.gateways, i).member.restart()),
      });
      expectNoViolation("gateway-killed", findings);
      expect(Object.keys(findings.numbers.unknown)).not.toHaveLength(0);
    },
    scale.timeoutMs,
  );
});
