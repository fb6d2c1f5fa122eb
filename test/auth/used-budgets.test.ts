/** Which part of its limits a tenant has used, as the metrics of the fleet say. */
import { describe, expect, it } from "vitest";
import { usedBudgets } from "../../gateway/service/used/budgets.js";
import { admit, applicant, LIMITS, useLab } from "../support/queue/lab.js";

describe("the used budgets of a tenant", () => {
  const lab = useLab();

  it("name each limit that the tenant has, with its used part", async () => {
    const tenant = "acme";
    const quotas = [{ name: `t:${tenant}`, field: "requests", most: 8 }] as const;
    const usage = { key: "k1", counts: 1 } as const;
    const asked = ["r1", "r2"].map((name) => ({ ...applicant(lab.lane, name, name), tenant, quotas, usage }));
    const said = await admit(lab.redis, { gateway: "gw", limits: LIMITS }, asked);
    expect(said.map((one) => one.said)).toEqual(["admitted", "admitted"]);
    const limits = {
      requests_per_second: 5,
      queued_requests: 4,
      live_sequences: 10,
      jobs: 0,
      quota: { requests: 8, tokens: 100, period: "month" as const },
    };
    const place = { redis: lab.redis, buckets: 1 };
    expect(await usedBudgets(place, { id: tenant, limits })).toEqual({
      requests_per_second: 0,
      queued_requests: 0.5,
      live_sequences: 0,
      quota: 0.25,
    });
    expect(await usedBudgets(place, { id: "other", limits: {} })).toEqual({});
  });
});
