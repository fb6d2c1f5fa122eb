/**
 * The model of a simulation: an addition and a rotation in JavaScript, the same function as the
 * model `chain`. A wrong, lost or doubled step changes all outputs that follow.
 */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { Tensor } from "#shared/frame.js";
import type { World } from "#shared/world.js";
import { chainStep } from "../fixtures/models/chain-reference.js";
import { servedModel } from "../fixtures/served-models.js";
import type { ModelHost } from "../../worker/tensors/host.js";
import type { Pieces } from "../../worker/tensors/memory.js";
import type { ServingModel } from "../../worker/tensors/serving.js";

/** The settings that may differ from run to run. */
export interface ModelPlan {
  readonly maxBatchSize: number;
  readonly maxDelayMs: number;
  /**
   * How many requests a worker announces that it takes at once. Requests beyond the total of all
   * workers get parked.
   */
  readonly takes: number;
  readonly history: number;
  /** How long a run of the model takes, in ms. */
  readonly runMs: () => number;
}

const MAX_IDLE_MS = 600_000;

export const MODEL = "chain";

export function servedChain({ maxBatchSize, takes, history }: ModelPlan): ServedModel {
  const tensor = (name: string) => ({ name, datatype: "INT64" as const, dims: [1] });
  return servedModel(MODEL, {
    maxBatchSize,
    inputs: [tensor("INPUT")],
    outputs: [tensor("OUTPUT")],
    sequence: { maxIdleMs: MAX_IDLE_MS, history },
    takes,
  });
}

export function servingChain(plan: ModelPlan, world: World): ServingModel {
  const { maxBatchSize, maxDelayMs, history } = plan;
  const layout = { axis: 0, bare: false };
  const layouts = (...names: string[]) => new Map(names.map((name) => [name, layout]));
  const [no, yes] = [Buffer.alloc(4), Buffer.from([1, 0, 0, 0])];
  return {
    name: MODEL,
    version: "1",
    batching: { batched: true, shared: new Set() },
    layouts: { inputs: layouts("INPUT", "STATE_IN", "START"), outputs: layouts("OUTPUT", "STATE_OUT") },
    constants: [],
    limits: { maxBatchSize, maxDelayMs, preferred: [] },
    controls: [{ kind: "start", tensor: "START", datatype: "INT32", values: { no, yes } }],
    states: [
      {
        input: "STATE_IN",
        output: "STATE_OUT",
        datatype: "INT64",
        dims: [1],
        initialShape: [1, 1],
        initial: Buffer.alloc(8),
      },
    ],
    maxIdleMs: MAX_IDLE_MS,
    history,
    host: hostOf(plan, world),
  };
}

function hostOf({ runMs }: ModelPlan, world: World): ModelHost {
  let last: Promise<unknown> = Promise.resolve();
  return {
    graph: { inputs: [], outputs: [] },
    run(inputs, outputs, _rows, begin) {
      const computed = compute(inputs);
      const ranMs = runMs();
      const done = last.then(() => {
        if (begin?.begin() === false) return false;
        return new Promise<boolean>((resolve) => world.after(ranMs, () => resolve(true)));
      });
      last = done;
      return done.then((hasRun) =>
        hasRun
          ? {
              outputs: outputs.map(({ name }) => ({
                name,
                datatype: "INT64" as const,
                shape: [computed.length, 1],
                data: int64s(computed),
              })),
              ranMs,
              letGo: () => undefined,
            }
          : undefined,
      );
    },
    close: () => Promise.resolve(),
  };
}

/** @returns the new state of each row, which is also the row's output */
function compute(inputs: readonly Pieces[]): bigint[] {
  const data = (wanted: string) => {
    const found = inputs.find(({ name }) => name === wanted);
    return Buffer.concat(found?.data.map((piece) => Buffer.from(piece)) ?? []);
  };
  const [input, state, start] = [data("INPUT"), data("STATE_IN"), data("START")];
  return Array.from({ length: input.length / 8 }, (_, row) => {
    const before = start.readInt32LE(4 * row) === 1 ? null : state.readBigInt64LE(8 * row);
    return chainStep(before, input.readBigInt64LE(8 * row));
  });
}

function int64s(values: readonly bigint[]): Buffer {
  const bytes = Buffer.alloc(8 * values.length);
  for (const [i, value] of values.entries()) bytes.writeBigInt64LE(value, 8 * i);
  return bytes;
}

export function inputTensor(value: bigint): Tensor {
  return { name: "INPUT", datatype: "INT64", shape: [1, 1], data: int64s([value]) };
}
