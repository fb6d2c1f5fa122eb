import { expect, it } from "vitest";
import { inTurn, makeTurns } from "./turns.js";

it("passes the turn on, whatever becomes of the work", async () => {
  const turns = makeTurns();
  expect(await inTurn(turns, () => Promise.resolve(1))).toBe(1);
  await expect(inTurn(turns, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await inTurn(turns, () => Promise.resolve(2))).toBe(2);
});
