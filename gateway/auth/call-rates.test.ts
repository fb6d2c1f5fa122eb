import { describe, expect, it } from "vitest";
import type { World } from "#shared/world.js";
import { CallRates } from "./call-rates.js";
import { anyOwner, type Owner } from "./owner/owner.js";

const owner = (keyId: string): Owner => ({ ...anyOwner("acme"), keyId });

function counting(perSecond: number, burst: number) {
  let time = 1_000;
  const rates = new CallRates({ perSecond, burst, world: { now: () => time } as unknown as World });
  const take = (one: Owner): string => {
    try {
      rates.take(one);
      return "taken";
    } catch (error) {
      return String(error);
    }
  };
  return { take, pass: (ms: number) => (time += ms) };
}

describe("the calls of a key", () => {
  it("are as many at once as the burst, and then one in each period", () => {
    const { take, pass } = counting(10, 3);
    const key = owner("a");
    expect([1, 2, 3].map(() => take(key))).toEqual(["taken", "taken", "taken"]);
    expect(take(key)).toContain(
      "Rate limit reached for calls per second: limit 10, burst 3. Please try again in 100ms.",
    );
    pass(99);
    expect(take(key)).toContain("Please try again in 1ms.");
    pass(1);
    expect([take(key), take(key)]).toEqual(["taken", expect.stringContaining("100ms")]);
    pass(1_000);
    expect([1, 2, 3].map(() => take(key))).toEqual(["taken", "taken", "taken"]);
  });

  it("count for each key by itself, and not at all without keys", () => {
    const { take } = counting(1, 1);
    expect([take(owner("a")), take(owner("b")), take(anyOwner("acme")), take(anyOwner("acme"))]).toEqual([
      "taken",
      "taken",
      "taken",
      "taken",
    ]);
    expect(take(owner("a"))).toContain("Rate limit reached");
  });
});
