/** Each field of a configuration that Baton obeys means in a fleet the same as in Triton. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { input as inputOf, node, output as outputOf } from "../../infra/tutorial/onnx-file.mjs";
import { makeModels, type MadeModel } from "../support/fleet/made-model.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { ask, input } from "./ask.js";

const float = (name: string, dims: string, more = "") =>
  `{ name: "${name}" data_type: TYPE_FP32 dims: ${dims} ${more} }`;

const models: Readonly<Record<string, MadeModel>> = {
  transposes: {
    graph: [
      inputOf("X", ["batch", 2, 3]),
      outputOf("Y", ["batch", 3, 2]),
      node("Transpose", ["X"], ["Y"], { perm: [0, 2, 1] }),
    ],
    config: `max_batch_size: 8
input ${float("X", "6", "reshape { shape: [ 2, 3 ] }")}
output ${float("Y", "[ 1, 6 ]", "reshape { shape: [ 3, 2 ] }")}
dynamic_batching { max_queue_delay_microseconds: 20000 preferred_batch_size: 3 }`,
  },
  "transposes-any": {
    graph: [
      inputOf("X", [1, "rows", 1, "columns"]),
      outputOf("Y", ["columns", "rows"]),
      node("Transpose", ["X"], ["T"], { perm: [0, 2, 3, 1] }),
      node("Squeeze", ["T"], ["Y"]),
    ],
    config: `input ${float("X", "[ -1, -1 ]", "reshape { shape: [ 1, -1, 1, -1 ] }")}
output ${float("Y", "[ -1, 1, -1 ]", "reshape { shape: [ -1, -1 ] }")}`,
  },
};

const repository = mkdtempSync(join(tmpdir(), "baton-configured-"));
afterAll(() => rmSync(repository, { recursive: true }));
makeModels(repository, models);

const running = useFleet({ repository, models: [], serving: Object.keys(models) });

interface Printed {
  readonly outputs: readonly { readonly shape: readonly number[]; readonly data: readonly number[] }[];
}

/** An answer with its shapes. */
async function infer(model: string, inputs: readonly unknown[]): Promise<Printed["outputs"]> {
  const body = JSON.stringify({ inputs });
  const response = await fetch(`${running.url}/v2/models/${model}/infer`, { method: "POST", body });
  return ((await response.json()) as Printed).outputs;
}

async function json(path: string): Promise<unknown> {
  return (await fetch(running.url + path)).json();
}

describe("reshape", () => {
  it("gives the graph its own shapes, and clients those of dims", async () => {
    const rows = [[1, 2, 3, 4, 5, 6].map((value) => value * 10), [1, 2, 3, 4, 5, 6]];
    const answers = await Promise.all([
      infer("transposes", [input("X", "FP32", [2, 6], rows.flat())]),
      infer("transposes", [input("X", "FP32", [1, 6], [6, 5, 4, 3, 2, 1])]),
    ]);
    expect(answers.flat()).toEqual([
      expect.objectContaining({ shape: [2, 1, 6], data: [10, 40, 20, 50, 30, 60, 1, 4, 2, 5, 3, 6] }),
      expect.objectContaining({ shape: [1, 1, 6], data: [6, 3, 5, 2, 4, 1] }),
    ]);
  });

  it("keeps the order of variable sizes", async () => {
    const [answer] = await infer("transposes-any", [input("X", "FP32", [2, 3], [1, 2, 3, 4, 5, 6])]);
    expect(answer).toMatchObject({ shape: [3, 1, 2], data: [1, 4, 2, 5, 3, 6] });
  });

  it("refuses the graph's shape in a request, and shows in the configuration", async () => {
    const { status, error } = await ask(running.url, "transposes", {
      inputs: [input("X", "FP32", [1, 2, 3], [1, 2, 3, 4, 5, 6])],
    });
    expect([status, error]).toEqual([400, expect.stringContaining("Expected [-1,6], got [1,2,3]")]);
    expect(await json("/v2/models/transposes/config")).toMatchObject({
      input: [{ name: "X", dims: [6], reshape: { shape: [2, 3] } }],
      output: [{ name: "Y", dims: [1, 6], reshape: { shape: [3, 2] } }],
    });
  });
});
