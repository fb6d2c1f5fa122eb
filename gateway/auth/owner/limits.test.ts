import { describe, expect, it } from "vitest";
import { budgetOf, isWithin, limitsFault, limitsIn, limitsInForce, parseLimits, workBudgetOf } from "./limits.js";

describe("limits", () => {
  it.each<[object, string | undefined]>([
    [{}, undefined],
    [{ requests_per_second: 0.5 }, undefined],
    [{ requests_per_second: 0, burst: 0 }, undefined],
    [{ requests_per_second: 100_000, burst: 1_000_000 }, undefined],
    [{ tokens_per_minute: 0 }, undefined],
    [{ tokens_per_minute: 0.5 }, "tokens_per_minute: "],
    [{ open_readers: 0 }, undefined],
    [{ open_readers: -1 }, "open_readers: "],
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
    expect(budgetOf(undefined, { id: "a", limits: { body_bytes: 5 } }, undefined)).toMatchObject({ bodyBytes: 5 });
    expect(limitsFault("tenant", { queued_requests: 1.5 })).toMatch(/^queued_requests: /);
    expect(budgetOf(undefined, { id: "a", limits: { live_sequences: 0 } }, undefined)).toMatchObject({
      liveSequences: 0,
    });
    expect(workBudgetOf({ id: "a", limits: { live_sequences: 5 } }, undefined)).toMatchObject({ liveSequences: 5 });
    expect(limitsFault("key", { live_sequences: 1 })).toMatch(/^'live_sequences' is not supported/);
    expect(limitsFault("key", { queued_requests: 1 })).toMatch(/^'queued_requests' is not supported/);
  });

  it("of a tenant may also be about things by number, and a key's may not", () => {
    const limits = { files: 0, file_bytes: 1, jobs: 2, schedules: 3, webhooks: 4, batches: 5, subscriptions: 6 };
    expect(limitsFault("tenant", limits)).toBeUndefined();
    expect(budgetOf(undefined, { id: "a", limits }, undefined)?.counts).toEqual(limits);
    expect(workBudgetOf({ id: "a", limits }, undefined)?.counts).toEqual(limits);
    for (const name of Object.keys(limits)) {
      expect(limitsFault("tenant", { [name]: -1 })?.slice(0, name.length + 2)).toBe(`${name}: `);
      expect(limitsFault("key", { [name]: 1 })?.startsWith(`'${name}' is not supported`)).toBe(true);
    }
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
    for (const name of ["concurrent_streams", "open_readers"]) {
      const told = [{ [name]: 5 }, { [name]: 0 }, { [name]: 6 }, {}].map((given) => isWithin(given, { [name]: 5 }));
      expect([name, ...told]).toEqual([name, true, true, false, false]);
    }
  });
});

describe("the budget of a key and its tenant", () => {
  const key = (limits: object) => ({ id: "k1", limits });
  const tenant = { id: "acme", limits: { requests_per_second: 0.5 } };

  it("has the rate of each that has a limit, the key's first", () => {
    expect(budgetOf(key({ requests_per_second: 2.5 }), tenant, undefined)).toEqual({
      rates: [
        { scope: "key", counts: "requests", name: "k:k1", limit: 2.5, periodUs: 400_000, burst: 2 },
        { scope: "tenant", counts: "requests", name: "t:acme", limit: 0.5, periodUs: 2_000_000, burst: 1 },
      ],
      weight: undefined,
      queued: undefined,
    });
    const own = { id: "acme", weight: 3, limits: { requests_per_second: 1, queued_bytes: 5 } };
    expect(budgetOf(undefined, own, undefined)).toMatchObject({ weight: 3, queued: { bytes: 5 } });
    expect(workBudgetOf(own, "-")).toEqual({
      usageKey: "-",
      rates: [],
      weight: 3,
      queued: { requests: undefined, bytes: 5 },
    });
    expect(budgetOf(key({}), { id: "acme", limits: {} }, undefined)).toBeUndefined();
    expect(budgetOf(undefined, tenant, undefined)?.rates).toHaveLength(1);
  });

  it("has rates of tokens, which are of a minute", () => {
    const limits = { tokens_per_minute: 6_000 };
    const rate = { counts: "tokens", limit: 6_000, periodUs: 10_000, burst: 6_000 };
    expect(budgetOf(key(limits), { id: "acme", limits }, undefined)?.tokens).toEqual([
      { scope: "key", name: "k:k1:tokens", ...rate },
      { scope: "tenant", name: "t:acme:tokens", ...rate },
    ]);
    expect(budgetOf(key({ tokens_per_minute: 0 }), { id: "a", limits: {} }, undefined)?.tokens).toMatchObject([
      { burst: 0 },
    ]);
    // A job that is due later, and a line of a batch, use the tenant's tokens, too.
    expect(workBudgetOf({ id: "acme", limits }, undefined)?.tokens).toHaveLength(1);
  });

  it("lets nothing pass at a rate of 0", () => {
    expect(
      budgetOf(key({ requests_per_second: 0, burst: 5 }), { id: "a", limits: {} }, undefined)?.rates,
    ).toMatchObject([{ burst: 0 }]);
  });

  it("says which limits it keeps: of key and tenant the lower", () => {
    const limits = { requests_per_second: 2, tokens_per_minute: 60, queued_requests: 7, live_sequences: 6, files: 5 };
    const given = budgetOf(
      key({ requests_per_second: 3.5, burst: 1, concurrent_streams: 4, open_readers: 3 }),
      { id: "a", limits: { ...limits, open_readers: 2 } },
      undefined,
    );
    expect(limitsIn(given)).toEqual({ ...limits, burst: 1, concurrent_streams: 4, open_readers: 2 });
    expect(JSON.stringify(limitsIn(undefined))).toBe("{}");
  });

  it("has the deployment's limits for a tenant that has none", () => {
    const usual = { requests_per_second: 7 };
    expect(limitsInForce("a", undefined, usual)).toMatchObject({ id: "a", limits: usual });
    expect(limitsInForce("a", { limits: {} }, usual)).toMatchObject({ id: "a", limits: usual });
    expect(limitsInForce("a", { limits: tenant.limits }, usual)).toMatchObject({ id: "a", limits: tenant.limits });
  });
});
