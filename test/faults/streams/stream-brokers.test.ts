import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StreamLab } from "../../support/streams/lab.js";
import { pause, repeatedly } from "../pace.js";
import { seed, streamScale } from "../scale.js";
import { expectUndisturbed } from "../verdict.js";

const { fewerRunning: running, different, tokens, timeoutMs } = streamScale;
let lab: StreamLab;

beforeAll(async () => {
  const fleet = { gateways: 2, workers: 2, models: ["gen-mha"] };
  lab = await StreamLab.open({ seed, fleet, asks: { count: different, model: "gen-mha", tokens } });
}, timeoutMs);
afterAll(() => lab.close());

describe("NATS killed and restarted under streams", () => {
  it(
    "loses messages, and no record",
    async () => {
      const findings = await lab.experiment({
        name: "stream-nats-killed",
        running,
        breaking: ({ nats }) =>
          repeatedly(streamScale.natsKills, 500, async () => {
            await nats.kill();
            await pause(700);
            await nats.restart();
          }),
      });
      expectUndisturbed("stream-nats-killed", findings);
      expect(findings.figures.worker["nats connection restored"]).toBeGreaterThan(0);
    },
    timeoutMs,
  );
});

describe("NATS down for long", () => {
  it(
    "does not hold streams up: they are admitted, read from the log, and end",
    async () => {
      const findings = await lab.experiment({
        name: "stream-nats-down",
        running,
        breaking: async ({ nats }, ended) => {
          await nats.kill();
          const before = ended.count;
          // As many streams again as ran at the kill must end: all of these have begun without
          // NATS.
          await Promise.all([pause(streamScale.natsDownMs), ended.reach(before + 2 * running)]);
          const meanwhile = ended.count - before;
          await nats.restart();
          return meanwhile;
        },
      });
      expectUndisturbed("stream-nats-down", findings);
      expect(findings.broke).toBeGreaterThanOrEqual(2 * running);
    },
    timeoutMs,
  );
});

describe("NATS that falls silent on a connection that stays", () => {
  it(
    "loses every message, the last ones too: the gateways look into the silence",
    async () => {
      const findings = await lab.experiment({
        name: "stream-nats-silent",
        running,
        breaking: async ({ lines }, ended) => {
          lines.nats.blackHole("toClient");
          await ended.reach(ended.count + running);
          lines.nats.heal();
        },
      });
      expectUndisturbed("stream-nats-silent", findings);
    },
    timeoutMs,
  );
});

describe("connections to Redis and NATS reset, and replies lost, under streams", () => {
  it(
    "change no record",
    async () => {
      const findings = await lab.experiment({
        name: "stream-links-cut",
        running,
        breaking: async ({ lines }) => {
          let cut = 0;
          await repeatedly(streamScale.resets, 250, (i) => {
            const line = [lines.workerRedis, lines.nats, lines.gatewayRedis][i % 3];
            cut += line?.resetAll() ?? 0;
            return Promise.resolve();
          });
          let lost = 0;
          await repeatedly(streamScale.lostReplies, 50, async (i) => {
            const line = i % 2 === 0 ? lines.workerRedis : lines.gatewayRedis;
            if (await line.loseReply(1 + (i % 5), AbortSignal.timeout(2_000))) lost++;
          });
          return { cut, lost };
        },
      });
      expectUndisturbed("stream-links-cut", findings);
      expect(findings.broke.cut).toBeGreaterThan(streamScale.resets);
      expect(findings.broke.lost).toBeGreaterThan(0);
    },
    timeoutMs,
  );
});

describe("redis-server killed with SIGKILL and restarted under streams", () => {
  it(
    "keeps every record: readers wait, nothing is lost or doubled",
    async () => {
      const findings = await lab.experiment({
        name: "stream-redis-killed",
        running,
        breaking: ({ redis }) =>
          repeatedly(streamScale.redisKills, 1_000, async () => {
            await redis.kill();
            await pause(500);
            await redis.restart();
          }),
      });
      expectUndisturbed("stream-redis-killed", findings);
      expect(findings.figures.worker["redis connection lost"]).toBeGreaterThan(0);
    },
    timeoutMs,
  );
});

describe("a worker whose way to Redis is slow, and then blocked", () => {
  it(
    "publishes nothing that is not in the log yet",
    async () => {
      const findings = await lab.experiment({
        name: "stream-commit-first",
        running: 16,
        breaking: async ({ lines }, ended) => {
          lines.workerRedis.delay(20);
          await ended.reach(ended.count + 16);
          await repeatedly(3, 200, async () => {
            lines.workerRedis.blackHole("toServer");
            await pause(300);
            lines.workerRedis.heal();
          });
        },
      });
      expectUndisturbed("stream-commit-first", findings);
      expect(findings.figures.messagesChecked).toBeGreaterThan(100);
    },
    timeoutMs,
  );
});
