import { describe, expect, it } from "vitest";
import { doses } from "../../chaos/plan.js";
import { renderReport } from "../../chaos/report.js";
import { runChaos } from "../../chaos/run.js";
import { scale, seed } from "../scale.js";

describe("a short dose of everything at once", () => {
  it(
    "violates nothing, sets aside exactly the poison, and leaves a clean floor",
    async () => {
      const report = await runChaos({
        seed,
        dose: doses.short,
        durationMs: 15_000,
        sequences: 24,
        steps: 15,
        workers: 3,
        gateways: 2,
        leaseMs: 1_000,
        note: () => undefined,
      });
      console.log(renderReport(report));
      expect({ violations: report.violations, shortfalls: report.shortfalls }).toEqual({
        violations: [],
        shortfalls: [],
      });
    },
    scale.timeoutMs,
  );
});
