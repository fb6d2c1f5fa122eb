/** When the gateway that observes the fleet is killed, another one observes within 15 s. */
import { expect, it } from "vitest";
import { registryKeys } from "#shared/queue/keys.js";
import { observer, observes } from "../../statistics/observing.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { until } from "../../support/until.js";

const running = useFleet({ models: ["simple"], gateways: 3, env: { BATON_METRICS_PORT: "0" } });

it("goes on with one other gateway", async () => {
  const dying = await observer(running.fleet.gateways);
  const left = running.fleet.gateways.filter((one) => one !== dying);
  await dying.member.kill();
  const since = performance.now();
  await until(async () => (await Promise.all(left.map(observes))).includes(true), 20_000);
  expect(performance.now() - since).toBeLessThan(16_000);
  const before = await running.redis.xlen(registryKeys.history);
  await until(async () => (await running.redis.xlen(registryKeys.history)) > before + 1, 15_000);
  expect((await Promise.all(left.map(observes))).filter(Boolean)).toHaveLength(1);
});
