import { expect, it } from "vitest";
import { viewOf } from "./view.js";

it("shows the checkpoints of a sequence, but none that a person has damaged", () => {
  const facts = (kept: string) => ["t:q", `9|8|5|0|v8|1:abc|||t:r|0|0|${kept}`, 40, "live"];
  expect(viewOf(facts("6=v6 8=v8"))).toMatchObject({ step: 4, version: "v8", stateBytes: 40, checkpoints: [2, 4] });
  expect(viewOf(facts("v6 8=v8"))).toMatchObject({ step: 4, checkpoints: [4] });
});
