import { expect, it } from "vitest";
import { fitShape } from "./parse-generate.js";

it.each<[dims: number[], count: number, shape: number[] | undefined]>([
  [[], 1, []],
  [[], 2, undefined],
  [[3], 3, [3]],
  [[3], 6, undefined],
  [[-1, 3], 6, [2, 3]],
  [[-1, -1], 6, [1, 6]],
  [[-1, 2, -1], 6, [1, 2, 3]],
  [[-1, -1, 2], 6, [1, 3, 2]],
  [[-1, 0], 6, undefined],
])("fits %j elements: %i", (dims, count, shape) => {
  if (shape === undefined) expect(() => fitShape("I", dims, count)).toThrow("The schema can not convert input 'I'");
  else expect(fitShape("I", dims, count)).toEqual(shape);
});
