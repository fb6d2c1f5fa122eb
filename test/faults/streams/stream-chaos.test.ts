import { describe, expect, it } from "vitest";
import { inject } from "../../chaos/inject.js";
import { doses, planFaults } from "../../chaos/plan.js";
import { Pace } from "../../support/sequences/pace.js";
import { seededRandom } from "../../support/fleet/random.js";
import { StreamLab } from "../../support/streams/lab.js";
import { seed, streamScale } from "../scale.js";
import { expectUndisturbed } from "../verdict.js";

const { running, tokens, timeoutMs } = streamScale;

/**
 * The other tests break one part each. This test takes as long as all other tests together, so only
 * the full dose has it.
 */
describe.runIf(streamScale.everythingAtOnce)("everything at once under streams", () => {
  it(
    "changes no record of any stream",
    async () => {
      const place = { gateways: 2, workers: 3 };
      const fleet = { ...place, models: ["gen-mha"] };
      const lab = await StreamLab.open({ seed, fleet, asks: { count: running, model: "gen-mha", tokens } });
      try {
        const circumstances = { ...place, durationMs: 60_000, leaseMs: lab.fleet.leaseMs };
        const plan = planFaults(doses.minimum, circumstances, seededRandom(seed).fork("faults"));
        const findings = await lab.experiment({
          name: "stream-chaos",
          running,
          breaking: (broken) => inject(broken, plan, { pace: new Pace(0), note: (line) => console.log(line) }),
        });
        expectUndisturbed("stream-chaos", findings);
        expect(findings.broke.workerKill).toBe(doses.minimum.workerKills);
        expect(findings.figures.takenOver).toBeGreaterThan(doses.minimum.workerKills);
      } finally {
        await lab.close();
      }
    },
    timeoutMs,
  );
});
