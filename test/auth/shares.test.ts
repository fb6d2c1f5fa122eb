/**
 * A tenant's record says how many requests it may have in the queue, and its share of the workers.
 */
import { expect, it } from "vitest";
import { Backlog, echo, many, READY } from "../edition/policies/backlog.js";
import { buckets } from "../edition/settings.js";
import { useKeyedFleet } from "./keyed.js";

const fleet = useKeyedFleet({
  models: ["echo-int32"],
  configs: echo(""),
  env: { ...buckets(1), BATON_TENANT_QUEUE_LIMIT: "400" },
  direct: true,
});
const { served, make, setTenant } = fleet;

it("gives tenants of weights 1 and 3 their shares within 5 %", { timeout: 180_000 }, async () => {
  const [first, light, heavy] = await Promise.all([
    make({ tenant: "first" }),
    make({ tenant: "light" }),
    make({ tenant: "heavy" }),
  ]);
  await setTenant("heavy", { weight: 3 });
  await setTenant("light", { weight: 1 });
  const backlog = new Backlog(served);
  await backlog.freeze();
  await backlog.wait(many(READY, () => ({ name: "first", headers: first.headers })));
  // The tenant with the smaller share asks first, and for as much.
  await backlog.wait(many(200, () => ({ name: "light", headers: light.headers })));
  await backlog.wait(many(200, () => ({ name: "heavy", headers: heavy.headers })));
  const said = await backlog.run();
  expect(said.filter(({ status }) => status !== 200)).toEqual([]);
  // Both tenants wait during this part.
  const contested = backlog.answered.filter((name) => name !== "first").slice(0, 240);
  const share = contested.filter((name) => name === "heavy").length / contested.length;
  expect(Math.abs(share - 3 / 4) / (3 / 4)).toBeLessThan(0.05);
});

it("refuses a tenant's requests beyond its own limit, and no other tenant's", { timeout: 180_000 }, async () => {
  const [bounded, other] = await Promise.all([make({ tenant: "bounded" }), make({ tenant: "other" })]);
  await setTenant("bounded", { limits: { queued_requests: 5 } });
  const backlog = new Backlog(served);
  await backlog.freeze();
  await backlog.wait(many(5, () => ({ name: "bounded", headers: bounded.headers })));
  const refused = await backlog.ask({ name: "bounded", headers: bounded.headers });
  expect(refused).toMatchObject({
    status: 429,
    code: "tenant_limit",
    error: "tenant 'bounded' may have 5 requests in the queue (its limit queued_requests)",
  });
  await backlog.wait(many(20, () => ({ name: "other", headers: other.headers })));
  const said = await backlog.run();
  expect(said.filter(({ status }) => status !== 200)).toHaveLength(1);
  expect((await backlog.ask({ name: "bounded", headers: bounded.headers })).status).toBe(200);
});
