import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StreamLab } from "../../support/streams/lab.js";
import { seed, streamScale } from "../scale.js";
import { expectUndisturbed } from "../verdict.js";

const { tokens, timeoutMs } = streamScale;
/** The token at which the model ends its process. */
const CRASH = 320;
const RUNS_ALONE = 3;
/** A request without a record is suspected after it has ended two processes. */
const RUNS_IN_COMPANY = 2;
const PILLS = 2;
let lab: StreamLab;

beforeAll(async () => {
  const fleet = { gateways: 1, workers: 2, models: ["gen-pill"] };
  lab = await StreamLab.open({ seed, fleet, asks: { count: 30, model: "gen-pill", tokens } });
}, timeoutMs);
afterAll(() => lab.close());

describe("prompts that crash the process which runs them, among others", () => {
  it(
    "are set aside after their runs alone; every other stream is what it is undisturbed",
    async () => {
      const findings = await lab.experiment({
        name: "stream-poison",
        running: 30,
        poison: PILLS,
        breaking: async (_, ended) => {
          await ended.reach(5);
          const client = lab.client("poisoner");
          const swallow = (i: number) => {
            const parameters = { max_tokens: 20, seed };
            const pill = { name: `pill ${i}`, model: "gen-pill", prompt: [CRASH], parameters };
            return client.read(pill, "completions", `pill-${i}-${seed}`);
          };
          const readings = await Promise.all(Array.from({ length: PILLS }, (_, i) => swallow(i)));
          return readings.map(({ outcome, pieces }) => ({ outcome, pieces: pieces.length }));
        },
      });
      expectUndisturbed("stream-poison", findings);
      const setAside = { outcome: { kind: "failed", code: "poison_request" }, pieces: 0 };
      expect(findings.broke).toMatchObject(findings.broke.map(() => setAside));
      const { worker } = findings.figures;
      expect(worker["request set aside"]).toBe(PILLS);
      // Alone, each pill ends as many processes as it may. In company the two pills may share a
      // crash.
      const crashes = worker["worker process died"] ?? 0;
      expect(crashes).toBeGreaterThan(RUNS_ALONE * PILLS);
      expect(crashes).toBeLessThanOrEqual((RUNS_ALONE + RUNS_IN_COMPANY) * PILLS);
    },
    timeoutMs,
  );
});
