import { describe, expect, it } from "vitest";
import { chooseModels, obedience } from "./choice.js";

const settings = { BATON_MODELS: undefined, BATON_LOAD_MODELS: ["a", "b"] };
const names = ["a", "b", "c", "d"];
const wish = {
  number: 7,
  models: new Map([
    ["b", { isLoaded: false }],
    ["c", { isLoaded: true, config: "{}" }],
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
