import { expect, it } from "vitest";
import { pausesOf } from "./fleet.js";

it("adds up the pauses of all isolates and nothing else", () => {
  const lines = [
    "[30972:0x2c250d60]      418 ms: Scavenge 44.0 (64.2) -> 45.5 (64.2) MB, 68.90 / 0.00 ms  (average mu = 1.000, current mu = 1.000) allocation failure; ",
    "[30972:0x7f01]      567 ms: Mark-Compact 57.3 (76.2) -> 41.0 (75.7) MB, 80.30 / 0.00 ms  (+ 0.0 ms in 1 steps since start of marking, biggest step 0.0 ms, walltime since start of marking 89 ms) (average mu = 1.000, current mu = 1.000) finalize incremental marking via stack guard; GC in old space requested",
    '{"level":30,"msg":"batch, 3 / 4 ms"}',
  ].map((text) => ({ text }));
  expect(pausesOf(lines)).toBeCloseTo(149.2);
});
