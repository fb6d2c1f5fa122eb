import { expect, it } from "vitest";
import { idleModels } from "./upkeep.js";

const pin = (model: string, version: string, maxIdleMs: number | undefined) => ({
  model,
  version,
  digest: "d",
  streams: false,
  maxIdleMs,
});

it("finds the models with sequences that nobody serves", () => {
  const pins = [pin("lstm", "1", 100), pin("lstm", "2", 100), pin("served", "1", 100), pin("simple", "1", undefined)];
  expect(idleModels(pins, new Set(["served"]))).toEqual([{ model: "lstm", maxIdleMs: 100 }]);
});

it("does not know how long sequences are kept whose versions differ in it", () => {
  const pins = [pin("a", "1", 100), pin("a", "2", 200), pin("a", "3", 200)];
  expect(idleModels(pins, new Set())).toEqual([{ model: "a", maxIdleMs: undefined }]);
});
