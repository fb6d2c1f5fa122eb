import { expect, it } from "vitest";
import { encodeFrame, type Tensor } from "#shared/frame.js";
import { delivery } from "../../test/fixtures/deliveries.js";
import { hold, type Held } from "../lane/holdings.js";
import { execute } from "./execute.js";
import type { ModelHost } from "./host.js";
import type { Pieces } from "./memory.js";
import type { ServingModel, StateSpec } from "./serving.js";

const bytes = (name: string, shape: readonly number[], values: readonly number[]): Tensor => ({
  name,
  datatype: "UINT8",
  shape,
  data: Buffer.from(values),
});

/** A model that adds its input to the end of each row's state, the second axis of the graph. */
function growing(): { readonly model: ServingModel; readonly shapes: string[] } {
  const shapes: string[] = [];
  const state: StateSpec = {
    input: "S",
    output: "T",
    datatype: "UINT8",
    dims: [-1],
    initialShape: [1, 0],
    initial: Buffer.alloc(0),
  };
  const host: ModelHost = {
    graph: { inputs: [], outputs: [] },
    run: ([x, s]) => {
      shapes.push(`${x?.shape.join()} ${s?.shape.join()}`);
      const rows = rowsOf(s).map((row, i) => [...row, rowsOf(x)[i]?.[0] ?? 0]);
      const shape = [rows.length, rows[0]?.length ?? 0];
      const outputs = [{ name: "T", datatype: "UINT8" as const, shape, data: Uint8Array.from(rows.flat()) }];
      return Promise.resolve({ outputs, ranMs: 1, letGo: () => undefined });
    },
    close: () => Promise.resolve(),
  };
  const first = { axis: 0, bare: false };
  const model: ServingModel = {
    name: "m",
    version: "1",
    batching: { batched: true, shared: new Set() },
    layouts: {
      inputs: new Map([
        ["X", first],
        ["S", first],
      ]),
      outputs: new Map([["T", first]]),
    },
    constants: [],
    limits: { maxBatchSize: 8, maxDelayMs: 0, preferred: [] },
    controls: [],
    states: [state],
    maxIdleMs: 1_000,
    history: 1,
    host,
  };
  return { model, shapes };
}

function rowsOf(tensor: Pieces | undefined): number[][] {
  const data = Buffer.concat(tensor?.data ?? []);
  const width = tensor?.shape[1] ?? 0;
  return Array.from({ length: tensor?.shape[0] ?? 0 }, (_, i) => [...data.subarray(i * width, (i + 1) * width)]);
}

function step(entry: string, value: number, state: readonly number[] | undefined): Held {
  const frame = encodeFrame({ outputs: [] }, [bytes("X", [1, 1], [value])]);
  const tensors = state && [bytes("S", [1, state.length], state)];
  const found = delivery(entry, { sequence: entry, step: 1, number: 1, frame });
  return hold(found, Infinity, { batched: true, shared: new Set() }, Promise.resolve({ kind: "found", tensors }));
}

it("stacks only states of one size, so that none gets what is another's", async () => {
  const { model, shapes } = growing();
  // In one tensor, these five bytes would pass for five rows of a byte each.
  const batch = [
    step("a", 1, [7, 7]),
    step("b", 2, []),
    step("c", 3, [8, 8]),
    step("d", 4, [9]),
    step("e", 5, undefined),
  ];
  const execution = await execute(model, batch, { maxStateBytes: 1_000 });
  expect([execution.runs, shapes]).toEqual([3, ["2,1 2,2", "2,1 2,0", "1,1 1,1"]]);
  const kept = execution
    .settlements()
    .map(({ delivery, checkpoint }) => [delivery.entry, [...(checkpoint?.tensors[0]?.data ?? [])]]);
  expect(Object.fromEntries(kept)).toEqual({ a: [7, 7, 1], b: [2], c: [8, 8, 3], d: [9, 4], e: [5] });
});
