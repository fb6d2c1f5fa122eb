import { expect, it } from "vitest";
import { IdSet } from "./id-set.js";

it("finds each id that has come before, and no other", () => {
  const ids = new IdSet();
  const COUNT = 20_000;
  for (let i = 0; i < COUNT; i++) expect(ids.add(`request-${i}`)).toBe(true);
  for (let i = 0; i < COUNT; i += 7) expect(ids.add(`request-${i}`)).toBe(false);
  expect(ids.add("request")).toBe(true);
});
