import { expect, it } from "vitest";
import { servedModel } from "../../test/fixtures/served-models.js";
import type { TensorOptions } from "./protocol.js";
import { makeTurns } from "../onnx/turns.js";
import { compareWithCpu } from "./compare.js";
import type { ServingModel } from "./serving.js";

const unused = (): never => {
  throw new Error("nothing is run where there is nothing to compare with");
};
const model: ServingModel = {
  name: "m",
  version: "1",
  batching: { batched: false, shared: new Set() },
  layouts: { inputs: new Map(), outputs: new Map() },
  constants: [],
  limits: { maxBatchSize: 1, maxDelayMs: 0, preferred: [] },
  controls: [],
  states: [],
  maxIdleMs: undefined,
  history: 1,
  host: { graph: { inputs: [], outputs: [] }, run: unused, close: unused },
};

it("compareWithCpu warns where the CPU cannot open the model", async () => {
  const options: TensorOptions = {
    // No session can open this file, so there is no copy on the CPU.
    modelFile: "/no/such/model.onnx",
    placement: { providers: ["webgpu"], gpu: 0 },
    turns: makeTurns(),
    intraOpThreads: 1,
    graphOptimization: "all",
    executeDelayMs: 0,
  };
  const warnings = await compareWithCpu(model, servedModel("m"), options, undefined, () => undefined);
  expect(warnings).toEqual([
    expect.stringMatching(/^its answers were not compared with the CPU's, which cannot open the model: ./),
  ]);
  expect(warnings.join()).not.toContain("/");
});
