import { afterEach, describe, expect, it } from "vitest";
import { noteWish } from "#shared/queue/admission/note-wish.js";
import { settleWish } from "#shared/queue/admission/settle-wish.js";
import { registryKeys } from "#shared/queue/keys.js";
import { isModelName, readWish } from "#shared/queue/wish.js";
import { useLab } from "../support/queue/lab.js";

describe("the wish for a model", () => {
  const lab = useLab();
  afterEach(() => lab.redis.flushall());
  let ids = 0;
  const note = (config: string, id = String(ids++)) => noteWish(lab.redis, "m", { isLoaded: true, config }, id);
  const settle = (number: number, isFulfilled: boolean) => settleWish(lab.redis, { model: "m", number, isFulfilled });
  const present = async () => (await readWish(lab.redis)).models.get("m");
  const whole = async () => (await readWish(lab.redis)).number;

  it("grows in number with each change", async () => {
    const first = await note("{}");
    const second = await note("{}");
    expect(second).toBeGreaterThan(first);
    expect(await present()).toEqual({ isLoaded: true, config: "{}", number: second });
    expect(await whole()).toBe(second);
    await lab.redis.hset(registryKeys.wish, "", String(second + 60_000));
    expect(await note("{}")).toBe(second + 60_001);
  });

  it("stays as it is if the call is repeated", async () => {
    const number = await note("a", "same");
    expect(await note("a", "same")).toBe(number);
    expect(await whole()).toBe(number);
  });

  it("gives way to the last that was fulfilled, past all that were not", async () => {
    const good = await note("good");
    expect(await settle(good, true)).toBe(true);
    const worse = await note("worse");
    const worst = await note("worst", "retried");
    await note("worst", "retried");
    expect(await settle(worse, false)).toBe(false);
    expect(await settle(worst, false)).toBe(true);
    expect(await present()).toEqual({ isLoaded: true, config: "good", number: good });
    expect(await whole()).toBeGreaterThan(worst);
  });

  it("goes if none was fulfilled, and the number grows all the same", async () => {
    const first = await note("bad");
    const second = await note("worse");
    expect(await settle(second, false)).toBe(true);
    expect(await settle(second, false)).toBe(false);
    expect(await settle(first, true)).toBe(false);
    expect(await present()).toBeUndefined();
    expect(await whole()).toBeGreaterThan(second);
  });

  it("is for a name that a folder may have", () => {
    expect(["m", "a b", "ü-1.x", "x".repeat(255)].map(isModelName)).toEqual([true, true, true, true]);
    expect(["", ".m", "a/b", "a\0", "ü".repeat(128)].map(isModelName)).toEqual([false, false, false, false, false]);
  });
});
