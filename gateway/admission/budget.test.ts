import { describe, expect, it } from "vitest";
import { durationText, RequestBudget, type OwnerRate, type RateHeaders } from "./budget.js";

const key: OwnerRate = { name: "k:a", scope: "key", perSecond: 10, periodUs: 100_000, burst: 20 };
const tenant: OwnerRate = { name: "t:acme", scope: "tenant", perSecond: 0.5, periodUs: 2_000_000, burst: 1 };

function told(act: (budget: RequestBudget) => unknown): { said: unknown; headers: RateHeaders | undefined } {
  const budget = new RequestBudget({ rates: [key, tenant] });
  let headers: RateHeaders | undefined;
  budget.onHeaders((found) => (headers = found));
  const said = act(budget);
  expect(budget.headers).toBe(headers);
  return { said, headers };
}

describe("the headers of a rate", () => {
  it("say what is left of the rate that Redis names", () => {
    const { headers } = told((budget) => budget.admitted({ name: "k:a", remaining: 17, resetUs: 299_001 }));
    expect(headers).toEqual({
      "x-ratelimit-limit-requests": "600",
      "x-ratelimit-remaining-requests": "17",
      "x-ratelimit-reset-requests": "300ms",
      "ratelimit-policy": '"requests";q=20;w=2',
      ratelimit: '"requests";r=17;t=1',
    });
  });

  it("say when to come again, to the millisecond and in whole seconds", () => {
    const { said, headers } = told((budget) => budget.refused("t:acme", 1_200_001));
    expect(headers).toEqual({
      "x-ratelimit-limit-requests": "30",
      "x-ratelimit-remaining-requests": "0",
      "x-ratelimit-reset-requests": "1.201s",
      "ratelimit-policy": '"requests";q=1;w=2',
      ratelimit: '"requests";r=0;t=2',
    });
    expect(said).toMatchObject({
      code: "rate_limit_exceeded",
      limited: { limit: "requests_per_second", scope: "tenant", waitMs: 1_201 },
      message: "Rate limit reached for requests per second: limit 0.5, burst 1. Please try again in 1.201s.",
    });
    expect(told((budget) => budget.refused("k:a", 1)).headers).toMatchObject({
      "x-ratelimit-reset-requests": "1.901s",
    });
  });

  it("are none if an earlier copy of the call was answered", () => {
    expect(told((budget) => budget.admitted(undefined)).headers).toBeUndefined();
  });

  it.each([
    [0, "0ms"],
    [12, "12ms"],
    [999, "999ms"],
    [1_000, "1s"],
    [1_500, "1.5s"],
    [360_000, "6m0s"],
    [3_723_004, "1h2m3.004s"],
  ])("write %i ms as %s", (ms, text) => {
    expect(durationText(ms)).toBe(text);
  });
});
