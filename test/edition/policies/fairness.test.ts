/** Tenants whose requests wait get shares by their weights, in spite of very different demand. */
import { expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { buckets } from "../settings.js";
import { Backlog, echo, many, READY, TENANT_HEADER } from "./backlog.js";

const weights = { a: 1, b: 2, c: 4 };

const served = useFleet({
  models: ["echo-int32"],
  configs: echo(""),
  env: {
    ...buckets(1),
    BATON_TENANT_HEADER: TENANT_HEADER,
    BATON_TENANT_WEIGHTS: Object.entries(weights)
      .map((pair) => pair.join("="))
      .join(","),
  },
  direct: true,
});

it("gives tenants of weights 1, 2 and 4 their shares within 5 %", { timeout: 180_000 }, async () => {
  const backlog = new Backlog(served);
  await backlog.freeze();
  // The tenant with the least share asks first, and for the most.
  await backlog.wait(many(READY, () => ({ name: "first", tenant: "z" })));
  await backlog.wait(many(300, () => ({ name: "a", tenant: "a" })));
  await backlog.wait(many(200, () => ({ name: "b", tenant: "b" })));
  await backlog.wait(many(200, () => ({ name: "c", tenant: "c" })));
  const said = await backlog.run();
  expect(said.filter(({ status }) => status !== 200)).toEqual([]);
  const order = backlog.answered.filter((name) => name !== "first");
  // All three tenants wait during this part.
  const contested = order.slice(0, 280);
  for (const [tenant, weight] of Object.entries(weights)) {
    const share = contested.filter((name) => name === tenant).length / contested.length;
    expect(Math.abs(share - weight / 7) / (weight / 7), `share of ${tenant}`).toBeLessThan(0.05);
  }
});
