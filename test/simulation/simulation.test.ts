import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { faults } from "./faults.js";
import { startOwnRedis, type OwnRedis } from "./redis.js";
import { rendered } from "./report.js";
import { simulate, type RunTerms } from "./run.js";
import { Scripts } from "./scripts.js";

/**
 * The faults by hand, and the first seed that finds each. After a change of the product, the same
 * seeds may make other runs, so the test then tries the seeds that follow.
 */
const found: Readonly<Record<string, number>> = {
  "no fence": 12,
  "acknowledge before commit": 7,
  "a result counts after its request has expired": 10,
  "a commit takes effect twice": 1,
  "a repeated admission call is not recognised": 10,
  "a wake-up is forgotten": 1,
  "a checkpoint moves though its commit was refused": 2,
  "waiting steps are taken in the wrong order": 1,
  "a dead worker's entries are not taken": 1,
  "an outcome lost by NATS is not looked up": 3,
  "a result counts after its request has expired, by the short script": 126,
};

/** Seeds that have found a fault of the product. The faults are mended. */
const once = {
  "a request that was admitted after its client was told that it had expired": 10,
  "an entry that a read of a lost connection was given": 49,
  "entries that a worker had taken over without hearing of it": 27,
};

/**
 * Seeds of a clean run, few enough for every change. The last has a model so slow that its load
 * takes longer than a run without progress may.
 */
const clean = [...Array.from({ length: 12 }, (_, i) => 101 + i), 910_209];

/** A run that gets stuck lasts for a simulated minute more. */
const LONG_MS = 120_000;

/** How many seeds a test tries for a fault. A fault that needs more seeds is too hard to find. */
const MOST_SEEDS = 40;

describe("a simulated fleet", () => {
  let own: OwnRedis;
  beforeAll(async () => {
    own = await startOwnRedis();
  });
  afterAll(() => own.dispose());

  const judged = async (seed: number, terms: RunTerms = {}) => {
    const report = await simulate(seed, own.redis, terms);
    return report.violations.length === 0 ? "nothing is wrong" : rendered(report);
  };

  it("loses, doubles and reorders nothing", { timeout: LONG_MS }, async () => {
    for (const seed of clean) expect(await judged(seed)).toBe("nothing is wrong");
  });

  it("loses, doubles and reorders nothing by the long scripts alone", { timeout: LONG_MS }, async () => {
    for (const seed of clean.slice(0, 4)) {
      expect(await judged(seed, { shortScripts: false })).toBe("nothing is wrong");
    }
  });

  it.each(Object.entries(once))("is not wrong any more about %s", { timeout: LONG_MS }, async (_, seed) => {
    expect(await judged(seed)).toBe("nothing is wrong");
  });

  it("has the same history with the same seed, and another one with another", { timeout: LONG_MS }, async () => {
    const [one, again, other] = [
      await simulate(3, own.redis),
      await simulate(3, own.redis),
      await simulate(4, own.redis),
    ];
    expect(again.trace.last()).toEqual(one.trace.last());
    expect(again.digest).toBe(one.digest);
    expect(other.digest).not.toBe(one.digest);
  });

  it.each(Object.keys(faults))("is found out: %s", { timeout: LONG_MS }, async (name) => {
    const first = found[name] ?? 1;
    let violations: readonly unknown[] = [];
    for (let seed = first; violations.length === 0 && seed < first + MOST_SEEDS; seed++) {
      ({ violations } = await simulate(seed, own.redis, { fault: faults[name] }));
    }
    expect(violations).not.toEqual([]);
  });

  it("has no fault that its scripts have outgrown", () => {
    const scripts = new Scripts([{ script: "take.lua", text: "what nobody wrote", by: "" }]);
    expect(() => scripts.translate("#!lua\n-- take.lua: takes\nreturn 1\n")).toThrow(/does not have the text/);
  });
});
