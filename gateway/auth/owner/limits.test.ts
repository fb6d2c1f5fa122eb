import { describe, expect, it } from "vitest";
import { budgetOf, isWithin, limitsFault, limitsInForce, parseLimits, workBudgetOf } from "./limits.js";

describe("limits", () => {
  it.each<[object, string | undefined]>([
    [{}, undefined],
    [{ requests_per_second: 0.5 }, undefined],
    [{ requests_per_second: 0, burst: 0 }, undefined],
    [{ requests_per_second: 100_000, burst: 1_000_000 }, undefined],
    [{ tokens_per_minute: 0 }, undefined],
    [{ tokens_per_minute: 0.5 }, "tokens_per_minute: "],
    [{ tokens_per_hour: 5 }, "'tokens_per_hour' is not supported: there are requests_per_second, burst"],
    [{ requests_per_second: -1 }, "requests_per_second: "],
    [{ requests_per_second: 0.000_01 }, "requests_per_second: must be 0, or at least 0.0001"],
    [{ requests_per_second: 100_001 }, "requests_per_second: "],
    [{ requests_per_second: "10" }, "requests_per_second: "],
    [{ requests_per_second: 1, burst: 1.5 }, "burst: "],
    [{ burst: 5 }, "burst needs requests_per_second"],
    [{ requests_per_second: 0.000_1, burst: 1_000_000 }, "burst: is too large for so low a rate"],
  ])("%j are refused by name, or good", (given, fault) => {
    const found = limitsFault("key", given);
    expect(fault === undefined ? found : found?.slice(0, fault.length)).toBe(fault);
  });

  it("are read from a setting", () => {
    expect(parseLimits('{"requests_per_second": 0.5, "burst": 3}')).toEqual({ requests_per_second: 0.5, burst: 3 });
    for (const text of ["", "no JSON", "[1]", "5", '{"burst": 3}', '{"tokens": 3}', '{"requests_per_second": -1}']) {
      expect([text, parseLimits(text)]).toEqual([text, undefined]);
    }
  });

  it("of a tenant may also be about its queue", () => {
    expect(limitsFault("tenant", { queued_requests: 0, queued_bytes: 5, body_bytes: 5 })).toBeUndefined();
    expect(budgetOf(undefined, { id: "a", limits: { body_bytes: 5 } })).toMatchObject({ bodyBytes: 5 });
    expect(limitsFault("tenant", { queued_requests: 1.5 })).toMatch(/^queued_requests: /);
    expect(limitsFault("key", { queued_requests: 1 })).toMatch(/^'queued_requests' is not supported/);
  });

  it("are within others if neither rate nor burst is higher", () => {
    const most = { requests_per_second: 10 };
    expect(isWithin({ requests_per_second: 10 }, most)).toBe(true);
    expect(isWithin({ requests_per_second: 0 }, most)).toBe(true);
    expect(isWithin({ requests_per_second: 5, burst: 11 }, most)).toBe(false);
    expect(isWithin({}, most)).toBe(false);
    expect(isWithin({}, {})).toBe(true);
    expect(isWithin({ tokens_per_minute: 5 }, { tokens_per_minute: 5 })).toBe(true);
    expect(isWithin({ tokens_per_minute: 6 }, { tokens_per_minute: 5 })).toBe(false);
    expect(isWithin({}, { tokens_per_minute: 5 })).toBe(false);
  });
});

describe("the budget of a key and its tenant", () => {
  const key = (limits: object) => ({ id: "k1", limits });
  const tenant = { id: "acme", limits: { requests_per_second: 0.5 } };

  it("has the rate of each that has a limit, the key's first", () => {
    expect(budgetOf(key({ requests_per_second: 2.5 }), tenant)).toEqual({
      rates: [
        { scope: "key", counts: "requests", name: "k:k1", limit: 2.5, periodUs: 400_000, burst: 2 },
        { scope: "tenant", counts: "requests", name: "t:acme", limit: 0.5, periodUs: 2_000_000, burst: 1 },
      ],
      weight: undefined,
      queued: undefined,
    });
    const own = { id: "acme", weight: 3, limits: { requests_per_second: 1, queued_bytes: 5 } };
    expect(budgetOf(undefined, own)).toMatchObject({ weight: 3, queued: { bytes: 5 } });
    expect(workBudgetOf(own)).toEqual({ rates: [], weight: 3, queued: { requests: undefined, bytes: 5 } });
    expect(budgetOf(key({}), { id: "acme", limits: {} })).toBeUndefined();
    expect(budgetOf(undefined, tenant)?.rates).toHaveLength(1);
  });

  it("has rates of tokens, which are of a minute", () => {
    const limits = { tokens_per_minute: 6_000 };
    const rate = { counts: "tokens", limit: 6_000, periodUs: 10_000, burst: 6_000 };
    expect(budgetOf(key(limits), { id: "acme", limits })?.tokens).toEqual([
      { scope: "key", name: "k:k1:tokens", ...rate },
      { scope: "tenant", name: "t:acme:tokens", ...rate },
    ]);
    expect(budgetOf(key({ tokens_per_minute: 0 }), { id: "a", limits: {} })?.tokens).toMatchObject([{ burst: 0 }]);
    // A job that is due later, and a line of a batch, use the tenant's tokens, too.
    expect(workBudgetOf({ id: "acme", limits })?.tokens).toHaveLength(1);
  });

  it("lets nothing pass at a rate of 0", () => {
    expect(budgetOf(key({ requests_per_second: 0, burst: 5 }), { id: "a", limits: {} })?.rates).toMatchObject([
      { burst: 0 },
    ]);
  });

  it("has the deployment's limits for a tenant that has none", () => {
    const usual = { requests_per_second: 7 };
    expect(limitsInForce("a", undefined, usual)).toMatchObject({ id: "a", limits: usual });
    expect(limitsInForce("a", { limits: {} }, usual)).toMatchObject({ id: "a", limits: usual });
    expect(limitsInForce("a", { limits: tenant.limits }, usual)).toMatchObject({ id: "a", limits: tenant.limits });
  });
});
