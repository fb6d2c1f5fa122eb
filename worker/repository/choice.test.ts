import { describe, expect, it } from "vitest";
import type { NumberedWish } from "#shared/queue/wish.js";
import { chooseModels, isBehind, obedience } from "./choice.js";

const settings = { BATON_MODELS: undefined, BATON_LOAD_MODELS: ["a", "b"] };
const names = ["a", "b", "c", "d"];
const wish = {
  number: 7,
  models: new Map([
    ["b", { isLoaded: false, number: 6 }],
    ["c", { isLoaded: true, config: "{}", number: 7 }],
  ]),
};

describe("the models that a worker loads", () => {
  it("are those that clients want, and of the others those of the settings", () => {
    const { isWanted, named, configs } = chooseModels(settings, wish);
    expect(names.filter(isWanted)).toEqual(["a", "c"]);
    expect(named).toEqual(["a", "c"]);
    expect([...configs]).toEqual([["c", "{}"]]);
  });

  it("are all but the unloaded models with *", () => {
    const { isWanted } = chooseModels({ ...settings, BATON_LOAD_MODELS: ["*"] }, wish);
    expect(names.filter(isWanted)).toEqual(["a", "c", "d"]);
  });

  it("are never others than BATON_MODELS", () => {
    const { isWanted, named } = chooseModels({ ...settings, BATON_MODELS: ["c", "d"] }, wish);
    expect(names.filter(isWanted)).toEqual(["c"]);
    expect(named).toEqual(["c"]);
  });

  it("are all of BATON_MODELS if no client can wish anything", () => {
    const { isWanted, named } = chooseModels({ ...settings, BATON_MODELS: ["c"] }, undefined);
    expect([names.filter(isWanted), named]).toEqual([["c"], ["c"]]);
    expect(names.filter(chooseModels(settings, undefined).isWanted)).toEqual(names);
  });

  it("are announced with those that are not loaded", () => {
    const scanned = ["a", "b", "d"].map((name) => ({ name }));
    expect(obedience(wish, chooseModels(settings, wish), scanned)).toEqual({
      number: 7,
      idle: [
        { name: "b", wasUnloaded: true },
        { name: "d", wasUnloaded: false },
      ],
    });
    expect(obedience(undefined, chooseModels(settings, undefined), scanned)).toBeUndefined();
  });
});

describe("a worker that learns of another number", () => {
  const changed = (name: string, now?: NumberedWish) => {
    const models = new Map<string, NumberedWish>(wish.models);
    if (now === undefined) models.delete(name);
    else models.set(name, now);
    return { number: 9, models };
  };

  it.each<[string, ReturnType<typeof changed>, string[], boolean]>([
    ["goes on if all is as it has read it", { ...wish, number: 9 }, ["a", "c"], false],
    ["loads a model again", changed("c", { isLoaded: true, number: 8 }), ["a", "c"], true],
    ["hears of an unload", changed("d", { isLoaded: false, number: 8 }), ["a", "c"], true],
    ["goes on without a model that it could not load", changed("c"), ["a"], false],
    ["unloads a model that shall not be there", changed("c"), ["a", "c"], true],
    ["loads a model as it was wished before", changed("c", { isLoaded: true, number: 3 }), ["a"], true],
    ["loads a model of its settings again", changed("b"), ["a", "c"], true],
  ])("%s", (_, now, serves, isTrue) => {
    expect(isBehind(settings, { read: wish, serves: new Set(serves) }, now)).toBe(isTrue);
  });
});
