import { expect, it } from "vitest";
import { lostModels } from "./lost-models.js";

const model = (name: string, version: string) => ({ name, version });
const failure = (name: string, version?: string) => ({
  name,
  reason: "bad",
  ...(version !== undefined && { version }),
});
const served = [model("m", "1"), model("m", "2"), model("n", "1")];

it.each([
  ["a version that was served and fails", [model("m", "1"), model("n", "1")], [failure("m", "2")], ["m"]],
  ["a new version that fails beside served ones", served, [failure("m", "3")], []],
  ["a new version that fails in place of all others", [model("n", "1")], [failure("m", "3")], ["m"]],
  ["a model that cannot be read", [model("m", "1"), model("m", "2")], [failure("n")], ["n"]],
  ["a model that was not served", served, [failure("x"), failure("y", "1")], []],
  ["a model that is gone from the repository", [model("m", "1"), model("m", "2")], [], []],
])("judges %s", (_, loaded, failed, lost) => {
  expect(lostModels(served, loaded, failed).map(({ name }) => name)).toEqual(lost);
});
