import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tokenRecord } from "#shared/contract/generation.js";
import { talk } from "../../support/streams/conversation.js";
import { StreamLab } from "../../support/streams/lab.js";
import { nth, pause, repeatedly } from "../pace.js";
import { seed, streamScale } from "../scale.js";
import { expectUndisturbed } from "../verdict.js";

const { running, fewerRunning, different, tokens, timeoutMs } = streamScale;
let lab: StreamLab;

beforeAll(async () => {
  const fleet = { gateways: 2, workers: 2, models: ["gen-mha"], direct: true };
  lab = await StreamLab.open({ seed, fleet, asks: { count: different, model: "gen-mha", tokens } });
}, timeoutMs);
afterAll(() => lab.close());

/**
 * Strikes once a second, or as soon as the last victim is back at work, so that a worker is always
 * at work.
 */
const everySecond = (count: number, blow: (i: number) => Promise<unknown>) =>
  repeatedly(count, 0, (i) => Promise.all([blow(i), pause(1_000)]));

describe("workers killed with SIGKILL under streams", () => {
  it(
    "are replaced: every stream is, record by record, what it is undisturbed",
    async () => {
      const findings = await lab.experiment({
        name: "stream-worker-killed",
        running,
        breaking: ({ workers }) => everySecond(streamScale.workerKills, (i) => nth(workers, i).restart()),
      });
      expectUndisturbed("stream-worker-killed", findings);
      const { longestPauseMs, takeovers } = findings.figures;
      const { slowest, medianMs } = takeovers;
      console.log(
        `longest pause of a reader ${longestPauseMs} ms, lease ${lab.fleet.leaseMs} ms; ` +
          `takeovers, up to the last stream's first token: half of them within ${medianMs} ms, the slowest ${JSON.stringify(slowest)}`,
      );
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
        running: fewerRunning,
        breaking: ({ workers, leaseMs }) =>
          repeatedly(streamScale.workerFreezes, 400, async (i) => {
            const worker = nth(workers, i);
            worker.freeze();
            await pause(leaseMs * 1.8);
            worker.thaw();
          }),
      });
      expectUndisturbed("stream-worker-frozen", findings);
      // The workers' own count: on a slow machine few of those streams have a token by then.
      expect(findings.figures.worker["reclaimed"]).toBeGreaterThan(streamScale.workerFreezes);
      // The old workers would have written the very same records. Only the refusals show the fence.
      expect(findings.figures.worker["append refused: the stream was taken over"]).toBeGreaterThan(0);
    },
    timeoutMs,
  );
});

describe("a conversation whose workers are killed between and during its turns", () => {
  it(
    "is the conversation that it is undisturbed",
    async () => {
      const { workers } = lab.fleet;
      const plan = { model: "gen-mha", count: 8, turns: streamScale.turns, seed };
      const calm = await talk(lab, { ...plan, name: "calm" });
      let kills = 0;
      const killOne = () => nth(workers, kills++).restart();
      const broken = await talk(lab, {
        ...plan,
        name: "broken",
        beforeTurn: async (turn) => turn % 2 === 1 && killOne(),
        duringTurn: async (turn) => turn % 2 === 0 && killOne(),
      });
      console.log(`conversations, seed ${seed}: ${kills} kills, ${broken.takenOver} turns taken over in their middle`);
      expect(broken.turns).toEqual(calm.turns);
      for (const turns of calm.turns) {
        const used = turns.map((log) => tokenRecord.parse(JSON.parse(log.at(-1) ?? "")).usage);
        const remembered = used.slice(1).map((now, i) => {
          const before = used[i];
          return (
            now !== undefined &&
            before !== undefined &&
            now.prompt_tokens > before.prompt_tokens + before.completion_tokens
          );
        });
        expect(remembered).toEqual(remembered.map(() => true));
      }
      expect(broken.takenOver).toBeGreaterThan(0);
      expect(await lab.leftOver()).toEqual([]);
    },
    timeoutMs,
  );
});
