import { expect, it } from "vitest";
import { isUpTo } from "./entry-order.js";

it.each([
  ["1-1", "1-1", true],
  ["1-9", "1-10", true],
  ["2-0", "1-10", false],
  ["9-0", "10-0", true],
])("knows whether %s is up to %s", (id, other, expected) => {
  expect(isUpTo(id, other)).toBe(expected);
});
