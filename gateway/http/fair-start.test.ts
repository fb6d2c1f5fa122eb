import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { FairStart } from "./fair-start.js";
import type { Asking } from "./guard.js";

const weights: Readonly<Record<string, number>> = { light: 1, heavy: 3 };

/** @returns the order in which requests of these tenants begin, all of which come at once */
async function orderOf(...tenants: readonly string[]): Promise<string[]> {
  const order: string[] = [];
  const fair = new FairStart({ shareOf: ({ target: name }) => ({ name, weight: weights[name] ?? 1 }) });
  await Promise.all(
    tenants.map(async (target) => {
      await fair.turn(() => ({ headers: {}, target }));
      order.push(target);
    }),
  );
  return order;
}

const times = (count: number, tenant: string) => Array.from({ length: count }, () => tenant);

describe("requests", () => {
  it("begin at once while few come, and nobody asks whose they are", async () => {
    const fair = new FairStart({
      shareOf() {
        throw new Error("was asked");
      },
    });
    for (let turn = 0; turn < 3; turn++) {
      for (let i = 0; i < 16; i++) expect(fair.turn(() => ({ headers: {}, target: "" }))).toBeUndefined();
      await setImmediate();
    }
  });

  it("of another tenant begin before those of a flood", async () => {
    const order = await orderOf(...times(1_000, "flood"), "other");
    expect(order.indexOf("other")).toBeLessThanOrEqual(17);
    expect(order).toHaveLength(1_001);
  });

  it("of two floods begin by weight", async () => {
    const order = await orderOf(...times(300, "heavy"), ...times(300, "light"));
    const first = order.slice(16, 216);
    expect(first.filter((name) => name === "light")).toHaveLength(50);
  });

  /** @returns requests that begin in the order of `order`; `add` lets one come */
  function started(shareOf = ({ target: name }: Asking) => ({ name, weight: weights[name] ?? 1 }), held = 0) {
    const order: string[] = [];
    const fair = new FairStart({ shareOf, held: () => held });
    const add = (target: string) => void fair.turn(() => ({ headers: {}, target }))?.then(() => order.push(target));
    const turnsUntil = async (count: number) => {
      while (order.length < count) await setImmediate();
    };
    return { order, add, turnsUntil, fair };
  }

  it.each([["late"], ["back"]])("of a tenant that was idle earn nothing by it: %s", async (name) => {
    const { order, add, turnsUntil } = started();
    for (let i = 0; i < 20; i++) add("first");
    add("back");
    for (const tenant of times(2_000, "first")) add(tenant);
    await turnsUntil(1_500);
    const begun = order.length;
    for (const tenant of times(200, name)) add(tenant);
    await turnsUntil(begun + 80);
    const since = order.slice(begun, begun + 80);
    expect(Math.abs(since.filter((tenant) => tenant === name).length - 40)).toBeLessThanOrEqual(1);
  });

  it("of a tenant that weighs nearly all do not keep others from beginning", async () => {
    const { order, add, turnsUntil } = started(({ target: name }) => ({ name, weight: name === "heavy" ? 9_999 : 1 }));
    for (const name of [...times(3_000, "heavy"), ...times(20, "light")]) add(name);
    await turnsUntil(2_020);
    expect(order.slice(0, 2_020).filter((name) => name === "light")).toHaveLength(20);
  });

  it("have turns also if there are more tenants than lines", async () => {
    const { order, add, turnsUntil } = started();
    for (let i = 0; i < 2_000; i++) add(`t${i}`);
    await turnsUntil(2_000 - 16);
    expect(new Set(order).size).toBe(2_000 - 16);
  });

  it("whose headers cannot be read have a turn, too", async () => {
    const { order, add, turnsUntil } = started(() => {
      throw new TypeError("a header called __proto__");
    });
    for (const name of times(20, "a")) add(name);
    await turnsUntil(4);
    expect(order).toHaveLength(4);
  });

  it("of the longest line begin at once while connections hold more than the memory should", async () => {
    const { order, add, fair } = started(undefined, 16_384);
    for (const name of [...times(16, "first"), "few"]) add(name);
    await Promise.resolve();
    expect(order).toEqual(["few"]);
    for (const name of times(50, "many")) add(name);
    fair.relieve();
    await Promise.resolve();
    expect(order).toHaveLength(51);
  });
});
