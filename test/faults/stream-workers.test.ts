import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StreamLab } from "../streams/lab.js";
import { nth, pause, repeatedly } from "./pace.js";
import { seed } from "./scale.js";
import { streamScale } from "./stream-scale.js";
import { expectUndisturbed } from "./stream-verdict.js";

const { running, timeoutMs } = streamScale;
let lab: StreamLab;

beforeAll(async () => {
  lab = await StreamLab.open({
    seed,
    fleet: { gateways: 2, workers: 2, models: ["gen-mha"] },
    model: "gen-mha",
    asks: running,
    tokens: [20, 120],
  });
}, timeoutMs);
afterAll(() => lab.close());

describe("workers killed with SIGKILL under streams", () => {
  it(
    "are replaced: every stream is, record by record, what it is undisturbed",
    async () => {
      const findings = await lab.experiment({
        name: "stream-worker-killed",
        running,
        breaking: ({ workers }) => repeatedly(streamScale.workerKills, 1_000, (i) => nth(workers, i).restart()),
      });
      expectUndisturbed("stream-worker-killed", findings);
      expect(findings.figures.takenOver).toBeGreaterThan(streamScale.workerKills);
    },
    timeoutMs,
  );
});

describe("workers frozen past their lease under streams, then thawed", () => {
  it(
    "find their streams taken over, and add nothing to them",
    async () => {
      const findings = await lab.experiment({
        name: "stream-worker-frozen",
        running,
        breaking: ({ workers, leaseMs }) =>
          repeatedly(streamScale.workerFreezes, 500, async (i) => {
            const worker = nth(workers, i);
            worker.freeze();
            await pause(leaseMs * 1.8);
            worker.thaw();
          }),
      });
      expectUndisturbed("stream-worker-frozen", findings);
      expect(findings.figures.takenOver).toBeGreaterThan(streamScale.workerFreezes);
    },
    timeoutMs,
  );
});
