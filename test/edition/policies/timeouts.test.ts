/** How long requests may wait: the policy's time, or the request's own if the policy allows one. */
import { describe, expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { buckets } from "../settings.js";
import { Backlog, echo, many, READY } from "./backlog.js";

const FOREVER_US = 600_000_000;
const SOON_US = 300_000;
const plan = (policy: string) =>
  ({
    gateways: 1,
    workers: 1,
    models: ["echo-int32"],
    configs: echo(`default_queue_policy { ${policy} }`),
    env: buckets(1),
    direct: true,
  }) as const;
const full = many(READY, () => ({ name: "first" }));
const refused = { status: 503, code: "expired", error: "Request timeout expired" };

describe("a policy that rejects", () => {
  const served = useFleet(plan(`default_timeout_microseconds: ${FOREVER_US} allow_timeout_override: true`));

  it("takes a shorter time from the request, also where it is next", { timeout: 60_000 }, async () => {
    const backlog = new Backlog(served);
    await backlog.freeze();
    // This request lies in the ready stream.
    expect(await backlog.ask({ name: "ready", parameters: { timeout: SOON_US } })).toMatchObject(refused);
    await backlog.wait(full);
    expect(await backlog.ask({ name: "parked", parameters: { timeout: SOON_US } })).toMatchObject(refused);
    await backlog.wait([{ name: "patient" }]);
    await backlog.run();
    expect(backlog.answered.sort()).toEqual([...full.map(({ name }) => name), "patient"].sort());
  });
});

describe("a policy that delays", () => {
  const served = useFleet(
    plan(`timeout_action: DELAY default_timeout_microseconds: ${FOREVER_US} allow_timeout_override: true`),
  );

  it("lets a request go behind the others after its own, shorter time", { timeout: 60_000 }, async () => {
    const backlog = new Backlog(served);
    await backlog.freeze();
    await backlog.wait(full);
    await backlog.wait([{ name: "hurried", parameters: { timeout: 1_000 } }]);
    await backlog.wait(many(3, () => ({ name: "usual" })));
    await new Promise((resolve) => setTimeout(resolve, 20));
    const said = await backlog.run();
    expect(said.every(({ status }) => status === 200)).toBe(true);
    expect(backlog.answered.slice(READY)).toEqual(["usual", "usual", "usual", "hurried"]);
  });
});

describe("a policy that allows no override", () => {
  const served = useFleet(plan(`timeout_action: DELAY default_timeout_microseconds: ${FOREVER_US}`));

  it("leaves a request its timeout as the deadline of its answer", { timeout: 60_000 }, async () => {
    const backlog = new Backlog(served);
    await backlog.freeze();
    await backlog.wait(full);
    expect(await backlog.ask({ name: "short", parameters: { timeout: SOON_US } })).toMatchObject(refused);
    await backlog.run();
    expect(backlog.answered).toEqual(full.map(({ name }) => name));
  });
});
