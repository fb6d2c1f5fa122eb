import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StreamLab } from "../../support/streams/lab.js";
import { nth, repeatedly } from "../pace.js";
import { seed, streamScale } from "../scale.js";
import { expectUndisturbed } from "../verdict.js";

const { timeoutMs } = streamScale;
const STREAMS = 16;
/** So long that no takeover comes from an expired lease. */
const LEASE_MS = 20_000;
let lab: StreamLab;

beforeAll(async () => {
  const fleet = { gateways: 1, workers: 2, models: ["gen-mha"], leaseMs: LEASE_MS };
  lab = await StreamLab.open({ seed, fleet, asks: { count: STREAMS, model: "gen-mha", tokens: [40, 120] } });
}, timeoutMs);
afterAll(() => lab.close());

describe("SIGTERM to a worker with 16 streams running", () => {
  it(
    "stops each at a committed record; it goes on elsewhere at once, and waits for no lease",
    async () => {
      const findings = await lab.experiment({
        name: "stream-worker-drained",
        running: STREAMS,
        breaking: async ({ workers }, ended) => {
          const exits: (number | null)[] = [];
          await repeatedly(streamScale.workerDrains, 0, async (i) => {
            await ended.reach(ended.count + 4);
            const worker = nth(workers, i);
            exits.push((await worker.terminate()).code);
            await worker.start();
          });
          return exits;
        },
      });
      expectUndisturbed("stream-worker-drained", findings);
      expect(findings.broke).toEqual(findings.broke.map(() => 0));
      expect(findings.figures.takenOver).toBeGreaterThan(0);
      // Streams that waited for a lease would pause for longer.
      expect(findings.figures.longestPauseMs).toBeLessThan(LEASE_MS / 2);
    },
    timeoutMs,
  );
});
