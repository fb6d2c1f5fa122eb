import { expect, it } from "vitest";
import { floatsOfHalves } from "./half-floats.js";

it("reads halves by their bits", () => {
  const halves = Uint16Array.of(0x0000, 0x8000, 0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x7c00, 0xfc00, 0x7e00);
  const floats = [...floatsOfHalves(halves)];
  expect(floats).toEqual([0, -0, 1, -2, 65_504, 2 ** -14, 2 ** -24, Infinity, -Infinity, Number.NaN]);
});
