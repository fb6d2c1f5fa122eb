import { describe, expect, it } from "vitest";
import { underBroken } from "./brokers-killed.js";
import { pause, repeatedly } from "./pace.js";
import { scale } from "./scale.js";
import { expectNoViolation } from "./verdict.js";

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
