import { describe, expect, it } from "vitest";
import { Shares, type Sharer } from "./shares.js";

interface Work extends Sharer {
  readonly amount: number;
}

/** The same numbers at each run, from 0 up to 1. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Serves the first of the next tenant. @returns the work served; undefined if nothing waits */
function serve(shares: Shares, waiting: Work[]): Work | undefined {
  const next = shares.inTurn(waiting)[0]?.[0];
  if (next === undefined) return undefined;
  waiting.splice(waiting.indexOf(next), 1);
  shares.charge(next, next.amount);
  return next;
}

function work(tenant: string, weight: number, amount: number, level = 1): Work {
  return { level, tenant, weight, amount };
}

/** Serves work, with a backlog of each tenant, until this amount was served. */
function amounts(shares: Shares, backlogs: readonly (() => Work)[], until: number): Record<string, number> {
  const waiting = backlogs.flatMap((next) => [next(), next(), next()]);
  const served: Record<string, number> = {};
  let sum = 0;
  while (sum < until) {
    const done = serve(shares, waiting);
    if (done === undefined) throw new Error("a backlog has an end");
    sum += done.amount;
    served[done.tenant] = (served[done.tenant] ?? 0) + done.amount;
    waiting.push(...backlogs.flatMap((next, i) => (waiting.some((one) => one.tenant === `t${i}`) ? [] : [next()])));
  }
  return served;
}

describe("shares of tenants that always want more", () => {
  it.each([
    ["of weights 1 and 3", [1, 3], [10, 10]],
    ["of weights 1 and 3, whatever the amounts", [1, 3], [400, 7]],
    ["of weights 1 and 3, the other way round", [1, 3], [7, 400]],
    ["of many weights", [1, 2, 4, 100], [5, 5, 5, 5]],
  ])("%s are as the weights", (_, weights, sizes) => {
    const largest = Math.max(...sizes);
    const all = weights.reduce((sum, weight) => sum + weight, 0);
    const backlogs = weights.map((weight, i) => () => work(`t${i}`, weight, sizes[i] ?? 1));
    const until = 400 * all * largest;
    const served = amounts(new Shares(), backlogs, until);
    for (const [i, weight] of weights.entries()) {
      expect(Math.abs((served[`t${i}`] ?? 0) / ((until * weight) / all) - 1), `t${i}`).toBeLessThan(0.01);
    }
  });

  it("differ by no more than a piece of each, at any time (Goyal, theorem 1)", () => {
    for (let seed = 1; seed <= 50; seed++) {
      const next = numbers(seed);
      const weights = Array.from({ length: 2 + Math.floor(next() * 4) }, () => 1 + Math.floor(next() * 9));
      const shares = new Shares();
      const waiting = weights.flatMap((weight, i) =>
        Array.from({ length: 100 }, () => work(`t${i}`, weight, 1 + Math.floor(next() * 500))),
      );
      const served = new Map<string, number>();
      const spread = () => weights.map((weight, i) => (served.get(`t${i}`) ?? 0) / weight);
      while (weights.every((__, i) => waiting.some(({ tenant }) => tenant === `t${i}`))) {
        const done = serve(shares, waiting);
        if (done === undefined) break;
        served.set(done.tenant, (served.get(done.tenant) ?? 0) + done.amount);
        const [first = 0, second = 0] = [...weights].sort((a, b) => a - b).map((weight) => 500 / weight);
        expect(Math.max(...spread()) - Math.min(...spread()), `seed ${seed}`).toBeLessThanOrEqual(first + second);
      }
    }
  });
});

describe("shares", () => {
  it("keep the order of arrival within a tenant, and between tenants that have used nothing", () => {
    const all = [work("b", 1, 1), work("a", 9, 1), work("b", 1, 2), work("a", 9, 2)];
    expect(new Shares().inTurn(all)).toEqual([
      [all[0], all[2]],
      [all[1], all[3]],
    ]);
  });

  it("go by level before all else, and each level has shares of its own", () => {
    const shares = new Shares();
    const [high, low, other] = [work("a", 1, 100, 1), work("a", 1, 100, 2), work("b", 1, 100, 2)];
    expect(shares.inTurn([low, other, high])).toEqual([[high], [low], [other]]);
    shares.charge(high, 1_000);
    expect(shares.inTurn([low, other, high])).toEqual([[high], [low], [other]]);
    shares.charge(low, 100);
    expect(shares.inTurn([low, other])).toEqual([[other], [low]]);
  });

  it("give a tenant that comes late its share from then on, and nothing for before", () => {
    const shares = new Shares();
    const early = Array.from({ length: 200 }, () => work("early", 1, 10));
    for (let i = 0; i < 100; i++) serve(shares, early);
    const both = [...early, ...Array.from({ length: 100 }, () => work("late", 1, 10))];
    const order = Array.from({ length: 20 }, () => serve(shares, both)?.tenant);
    expect(order.filter((tenant) => tenant === "late")).toHaveLength(10);
  });

  it("charge a tenant that returns at once for what it has just used", () => {
    const shares = new Shares();
    const [a, b] = [work("a", 1, 100), work("b", 1, 10)];
    shares.inTurn([a, b]);
    shares.charge(a, 100);
    for (let i = 0; i < 10; i++) {
      expect(shares.inTurn([a, b])[0]).toEqual([b]);
      shares.charge(b, 10);
    }
    expect(shares.inTurn([a, b])[0]).toEqual([a]);
  });

  it("charge only what runs: work that leaves before has cost nothing", () => {
    const shares = new Shares();
    const [a, b] = [work("a", 1, 100), work("b", 1, 100)];
    shares.inTurn([a, b, a, a]);
    // The client of two pieces leaves.
    shares.charge(a, 100);
    shares.charge(b, 100);
    expect(shares.inTurn([a, b])).toEqual([[a], [b]]);
  });

  it("begin anew when nothing waits and nothing runs", () => {
    const shares = new Shares();
    shares.charge(work("a", 1, 1), 1_000);
    shares.clear();
    const [a, b] = [work("a", 1, 1), work("b", 1, 1)];
    expect(shares.inTurn([a, b])[0]).toEqual([a]);
  });
});
