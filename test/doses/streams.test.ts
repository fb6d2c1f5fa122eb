/** A stream has no gap and no repeat when its worker and a gateway are killed. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nth } from "../faults/pace.js";
import { seed } from "../faults/scale.js";
import { expectUndisturbed } from "../faults/verdict.js";
import { StreamLab } from "../support/streams/lab.js";

const RUNNING = 24;
let lab: StreamLab;

beforeAll(async () => {
  const fleet = { gateways: 2, workers: 2, models: ["gen-mha"], direct: true };
  lab = await StreamLab.open({ seed, fleet, asks: { count: 12, model: "gen-mha", tokens: [20, 80] } });
}, 120_000);
afterAll(() => lab.close());

describe("streams whose worker and then a gateway are killed", () => {
  it("are, record by record, as they are undisturbed", { timeout: 120_000 }, async () => {
    const findings = await lab.experiment({
      name: "stream-dose",
      running: RUNNING,
      breaking: async ({ workers, gateways }, ended) => {
        await ended.reach(1);
        await nth(workers, 0).restart();
        await nth(gateways, 0).member.restart();
      },
    });
    expectUndisturbed("stream-dose", findings);
    expect(findings.figures.takenOver).toBeGreaterThan(0);
    expect(findings.figures.reconnects).toBeGreaterThan(0);
  });
});
