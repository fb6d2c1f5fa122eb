import { expect, it } from "vitest";
import { parseWeights } from "./weights.js";

it.each([
  ["", {}],
  ["a=1,b=2", { a: 1, b: 2 }],
  [" a = 10 , b=9999", { a: 10, b: 9999 }],
  ["a", undefined],
  ["a=0", undefined],
  ["a=-1", undefined],
  ["a=1.5", undefined],
  ["a=1,a=2", undefined],
  ["a:b=1", undefined],
])("reads the weights %j", (text, weights) => {
  const read = parseWeights(text);
  expect(read && Object.fromEntries(read)).toEqual(weights);
});
