import { expect, it } from "vitest";
import { lostModels } from "./lost-models.js";

const model = (name: string, version: string, isOnGpu = false) => ({ name, version, isOnGpu });
const loadedModel = (name: string, version: string, fallback?: string) => ({ name, version, fallback });
const failure = (name: string, version?: string) => ({
  name,
  reason: "bad",
  ...(version !== undefined && { version }),
});
const served = [model("m", "1"), model("m", "2"), model("n", "1", true)];
const [m1, m2, n1] = [loadedModel("m", "1"), loadedModel("m", "2"), loadedModel("n", "1")];
const found = [{}];

it.each([
  ["a version that was served and fails", [m1, n1], [failure("m", "2")], ["m"]],
  ["a new version that fails beside served ones", [m1, m2, n1], [failure("m", "3")], []],
  ["a new version that fails in place of all others", [n1], [failure("m", "3")], ["m"]],
  ["a model that cannot be read", [m1, m2], [failure("n")], ["n"]],
  ["a model that was not served", [m1, m2, n1], [failure("x"), failure("y", "1")], []],
  ["a model that is gone from the repository", [m1, m2], [], []],
  ["a model that leaves its GPU", [m1, m2, loadedModel("n", "1", "full")], [], ["n"]],
  ["a new version that finds no room beside it", [m1, m2, n1, loadedModel("n", "2", "full")], [], ["n"]],
  ["a model that was on the CPU before", [m1, loadedModel("m", "2", "full"), n1], [], []],
  ["a new model for which the GPU has no room", [m1, m2, n1, loadedModel("x", "1", "full")], [], []],
])("judges %s", (_, loaded, failed, lost) => {
  expect(lostModels(served, { found, loaded, failed, bereft: new Set() }).map(({ name }) => name)).toEqual(lost);
});

it("takes repositories without any model for volumes that are away", () => {
  const reason = "the repositories hold no model at all";
  const empty = { bereft: new Set<string>(), found: [], loaded: [], failed: [] };
  expect(lostModels(served, empty)).toEqual([
    { name: "m", reason },
    { name: "n", reason },
  ]);
  expect(lostModels([], empty)).toEqual([]);
});
