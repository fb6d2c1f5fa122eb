import { describe, expect, it } from "vitest";
import { durationText, RequestBudget, type OwnerRate, type RateHeaders } from "./budget.js";

const counts = "requests";
const key: OwnerRate = { name: "k:a", scope: "key", counts, limit: 10, periodUs: 100_000, burst: 20 };
const tenant: OwnerRate = { name: "t:acme", scope: "tenant", counts, limit: 0.5, periodUs: 2_000_000, burst: 1 };
const tokens: OwnerRate = {
  name: "k:a:tokens",
  scope: "key",
  counts: "tokens",
  limit: 60_000,
  periodUs: 1_000,
  burst: 60_000,
};
const charge = { cost: 500, prompt: 100, choices: 1 };

function told(act: (budget: RequestBudget) => unknown): { said: unknown; headers: RateHeaders | undefined } {
  const budget = new RequestBudget({ rates: [key, tenant], tokens: [tokens] });
  let headers: RateHeaders | undefined;
  budget.onHeaders((found) => (headers = found));
  const said = act(budget);
  expect(budget.headers).toBe(headers);
  return { said, headers };
}

describe("the headers of a rate", () => {
  it("say what is left of the rate that Redis names", () => {
    const { headers } = told((budget) => budget.admitted([{ name: "k:a", remaining: 17, resetUs: 299_001 }]));
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

  it("say what is left of requests and of tokens", () => {
    const { headers } = told((budget) =>
      budget.admitted([
        { name: "t:acme", remaining: 0, resetUs: 2_000_000 },
        { name: "k:a:tokens", remaining: 59_500, resetUs: 500_000 },
      ]),
    );
    expect(headers).toEqual({
      "x-ratelimit-limit-requests": "30",
      "x-ratelimit-remaining-requests": "0",
      "x-ratelimit-reset-requests": "2s",
      "x-ratelimit-limit-tokens": "60000",
      "x-ratelimit-remaining-tokens": "59500",
      "x-ratelimit-reset-tokens": "500ms",
      "ratelimit-policy": '"requests";q=1;w=2, "tokens";q=60000;w=60',
      ratelimit: '"requests";r=0;t=2, "tokens";r=59500;t=1',
    });
  });

  it("say how many tokens are left of a generation that costs too many", () => {
    const { said, headers } = told((budget) => {
      expect(budget.ratesOf(() => charge)).toEqual([key, tenant, { ...tokens, charge }]);
      return budget.refused("k:a:tokens", 200_000);
    });
    expect(said).toMatchObject({
      code: "rate_limit_exceeded",
      limited: { limit: "tokens_per_minute", scope: "key", waitMs: 200 },
      message: "Rate limit reached for tokens per minute: limit 60000. Please try again in 200ms.",
    });
    expect(headers).toMatchObject({ "x-ratelimit-remaining-tokens": "300", "x-ratelimit-reset-tokens": "59.7s" });
  });

  it("are none if an earlier copy of the call was answered", () => {
    expect(told((budget) => budget.admitted(undefined)).headers).toBeUndefined();
  });

  it("are none of tokens for a request that is no generation", () => {
    expect(new RequestBudget({ rates: [key], tokens: [tokens] }).ratesOf()).toEqual([key]);
  });

  it("are those of the whole request where a part of it is admitted or refused", () => {
    const { said, headers } = told((budget) => {
      const refusals: unknown[] = [];
      budget.onRefusal((error) => refusals.push(error));
      budget.admitted([{ name: "k:a", remaining: 17, resetUs: 299_001 }]);
      const part = budget.forPart();
      expect(part.ratesOf(() => charge)).toEqual([{ ...tokens, charge }]);
      return [part.refused("k:a:tokens", 200_000) === refusals[0]];
    });
    expect(said).toEqual([true]);
    expect(headers).toMatchObject({ "x-ratelimit-remaining-requests": "17", "x-ratelimit-remaining-tokens": "300" });
  });

  it("refuse parts that together cost more than their owner has at any time", () => {
    const budget = new RequestBudget({ rates: [], tokens: [tokens] });
    const half = () => ({ ...charge, cost: 30_000 });
    for (const one of [budget, budget.forPart()]) {
      // A request that is made anew for another version costs the same.
      for (let i = 0; i < 2; i++) expect(() => one.ratesOf(half)).not.toThrow();
    }
    expect(() => budget.forPart().ratesOf(half)).toThrow("come to 90000 tokens");
  });

  it("refuse a generation for later that no time will admit", () => {
    const of = (limit: number) => new RequestBudget({ rates: [], tokens: [{ ...tokens, limit, burst: limit }] });
    expect(() => of(500).checkLater(() => charge)).not.toThrow();
    expect(() => of(499).checkLater(() => charge)).toThrow("come to 500 tokens");
    expect(() => of(0).checkLater(() => charge)).toThrow("Rate limit reached for tokens per minute: limit 0.");
  });

  it("refuse a generation that costs more than its owner has at any time", () => {
    const costs = (cost: number) => () =>
      new RequestBudget({ rates: [], tokens: [tokens] }).ratesOf(() => ({ ...charge, cost }));
    expect(costs(60_000)).not.toThrow();
    expect(costs(60_001)).toThrow(
      "the prompt and max_tokens come to 60001 tokens, and the API key has 60000 (tokens_per_minute)",
    );
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
