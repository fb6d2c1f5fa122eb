/**
 * A gateway's link to Redis stalls with an admission on it, and the gateway admits the request anew
 * over another link. The first call arrives after the request was answered and after the notes of
 * its outcome expired. No client sent a key.
 */
import { expect, it } from "vitest";
import { until } from "../../support/until.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { add } from "../../edition/ask.js";
import { buckets } from "../../edition/settings.js";

/** The shortest TTL for outcomes that no client fetched. */
const OUTCOME_TTL_MS = 10_000;

const served = useFleet({
  models: ["accumulate"],
  env: { ...buckets(16), BATON_OUTCOME_TTL_MS: String(OUTCOME_TTL_MS) },
});

it("takes effect once", { timeout: 90_000 }, async () => {
  const { redis } = served;
  const redisMs = async () => {
    const [seconds, micros] = await redis.time();
    return Number(seconds) * 1_000 + Number(micros) / 1_000;
  };
  const step = (value: number, start = false) => add(served.url, { sequence: 42, value, start });
  expect(await step(20, true)).toMatchObject({ status: 200, output: 20 });

  const stalled = served.fleet.lines.gatewayRedis.stall();
  const second = step(22);
  await expect.poll(() => stalled.holds('"name":"INPUT"'), { interval: 1 }).toBe(true);
  stalled.cut();
  expect(await second).toMatchObject({ status: 200, output: 42 });

  const expiredAt = (await redisMs()) + OUTCOME_TTL_MS + 1_000;
  await until(async () => (await redisMs()) > expiredAt, 60_000);
  await stalled.deliver();
  expect(await step(0)).toMatchObject({ status: 200, output: 42 });
});
