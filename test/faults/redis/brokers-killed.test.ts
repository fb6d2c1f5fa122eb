import { describe, expect, it } from "vitest";
import { experiment, type Findings } from "../../support/sequences/experiment.js";
import type { Fleet } from "../../support/fleet/fleet.js";
import { pause, repeatedly } from "../pace.js";
import { scale, seed } from "../scale.js";
import { expectNoViolation } from "../verdict.js";

function underBroken(spreadMs: number, breaking: (fleet: Fleet) => Promise<void>): Promise<Findings<void>> {
  return experiment({
    seed,
    fleet: { gateways: 2, workers: scale.workers, models: ["chain", "simple"] },
    sequences: scale.sequences,
    steps: scale.steps,
    models: ["chain"],
    clients: scale.clients,
    spreadMs,
    breaking,
  });
}

describe("redis-server killed with SIGKILL and restarted under load", () => {
  it(
    "loses and doubles nothing; meanwhile clients are told to come back",
    async () => {
      const findings = await underBroken(scale.redisKills * 4_000, ({ redis }) =>
        repeatedly(scale.redisKills, 1_500, async () => {
          await redis.kill();
          await pause(700);
          await redis.restart();
        }),
      );
      expectNoViolation("redis-killed", findings);
      const told = Object.keys(findings.numbers.unknown);
      expect(told.filter((why) => !/^503 (unavailable|outcome_unknown|model_unavailable)$/.test(why))).toEqual([]);
    },
    scale.timeoutMs,
  );
});

describe("NATS killed and restarted under load", () => {
  it(
    "makes answers slower at most: all are found in Redis",
    async () => {
      const findings = await underBroken(scale.natsKills * 4_000, ({ nats }) =>
        repeatedly(scale.natsKills, 1_000, async () => {
          await nats.kill();
          await pause(2_000);
          await nats.restart();
        }),
      );
      expectNoViolation("nats-killed", findings);
    },
    scale.timeoutMs,
  );
});
