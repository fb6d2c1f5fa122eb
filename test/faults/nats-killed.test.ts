import { describe, it } from "vitest";
import { underBroken } from "./brokers-killed.js";
import { pause, repeatedly } from "./pace.js";
import { scale } from "./scale.js";
import { expectNoViolation } from "./verdict.js";

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
