import { expect, it } from "vitest";
import { servedModel } from "../../test/fixtures/served-models.js";
import type { ModelHost } from "./host.js";
import type { ServingModel } from "./serving.js";
import { madeUp } from "./made-up.js";
import { runSamples, warmUp } from "./warm-up.js";

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

it("runSamples runs each batch as often as its count says, and fails with the first that fails", async () => {
  const shapes: string[] = [];
  const model = modelOn(([x]) => {
    shapes.push(String(x?.shape));
    if (x?.shape[0] === 3) return Promise.reject(new Error("no room for 3"));
    const data = new Uint8Array(8 * (x?.shape[0] ?? 0));
    const outputs = [{ name: "Y", datatype: "INT32" as const, shape: x?.shape ?? [], data }];
    return Promise.resolve({ outputs, ranMs: 1, letGo: () => undefined });
  });
  const sample = (name: string, count: number, size: number) => {
    const rows = Array.from({ length: size }, (_, sequence) => sequence);
    const batch = rows.map((sequence) => madeUp(served, { sequence, step: 1, last: 1, size: 1 }, undefined));
    return { name, count, model, batch };
  };
  await runSamples([sample("a", 2, 2), sample("b", 1, 1)]);
  expect(shapes).toEqual(["2,2", "2,2", "1,2"]);
  // Its three requests run one by one, but not as the batch that the sample asks for.
  const failing = runSamples([sample("c", 1, 3), sample("d", 1, 1)]);
  await expect(failing).rejects.toThrow("failed to run warmup sample 'c': its 3 requests run only one by one");
});
