import { expect, it } from "vitest";
import { servedModel } from "../../test/fixtures/served-models.js";
import type { ModelHost } from "./host.js";
import type { ServingModel } from "./serving.js";
import { warmUp } from "./warm-up.js";

const spec = { datatype: "INT32" as const, dims: [2] };
const served = servedModel("m", {
  maxBatchSize: 8,
  inputs: [{ name: "X", ...spec }],
  outputs: [{ name: "Y", ...spec }],
});
const first = new Map([["X", { axis: 0, bare: false }]]);

function modelOn(run: ModelHost["run"]): ServingModel {
  return {
    name: "m",
    version: "1",
    batching: { batched: true, shared: new Set() },
    layouts: { inputs: first, outputs: new Map([["Y", { axis: 0, bare: false }]]) },
    constants: [],
    limits: { maxBatchSize: 8, maxDelayMs: 0, preferred: [] },
    controls: [],
    states: [],
    maxIdleMs: undefined,
    history: 1,
    host: { graph: { inputs: [], outputs: [] }, run, close: () => Promise.resolve() },
  };
}

it("warmUp runs one batch of each size, and warns of those that fail", async () => {
  const shapes: string[] = [];
  const model = modelOn(([x]) => {
    shapes.push(String(x?.shape));
    if (shapes.length > 1) return Promise.reject(new Error("no room for 8"));
    const data = new Uint8Array(8 * (x?.shape[0] ?? 0));
    const outputs = [{ name: "Y", datatype: "INT32" as const, shape: x?.shape ?? [], data }];
    return Promise.resolve({ outputs, ranMs: 1, letGo: () => undefined });
  });
  const [warning, ...others] = await warmUp(model, served, [4, 8]);
  expect(warning).toMatch(/^the warm-up with a batch of 8 failed: .*no room for 8/);
  expect(others).toEqual([]);
  expect(shapes.slice(0, 2)).toEqual(["4,2", "8,2"]);
});
