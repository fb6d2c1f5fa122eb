import { expect, it } from "vitest";
import { Begin } from "./begin.js";

it("gives a run to the first of both threads", () => {
  const [one, other] = [new Begin(), new Begin()];
  expect([one.begin(), new Begin(one.memory).takeBack()]).toEqual([true, false]);
  expect([new Begin(other.memory).takeBack(), other.begin(), other.takeBack()]).toEqual([true, false, false]);
});
