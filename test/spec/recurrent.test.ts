/**
 * Recurrent models as PyTorch exports them, their states wherever the batch axis is, are served with
 * nothing but `sequence_batching { }`, and answer as a bare loop does.
 */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Tensor } from "onnxruntime-node";
import { seededRandom, type Random } from "../support/fleet/random.js";
import { root } from "../support/fleet/root.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { BareLoop, difference, tensorOf, type Loop } from "../support/recurrent.js";
import { ask, input } from "./ask.js";

/** An input of a step as clients give it, and the graph's shape of it. */
interface Given {
  readonly name: string;
  readonly datatype: "FP32" | "INT64";
  readonly shape: readonly number[];
  readonly graph: readonly number[];
  readonly data: readonly number[];
}

interface Case {
  readonly loop: Omit<Loop, "file">;
  readonly inputs: (random: Random) => readonly Given[];
  readonly outputs: readonly string[];
}

const floats = (random: Random, count: number): number[] => Array.from({ length: count }, () => random.unit() * 2 - 1);
const frame = (name: string, shape: readonly number[], graph: readonly number[]) => (random: Random) => {
  const data = floats(
    random,
    shape.reduce((product, dim) => product * dim, 1),
  );
  return [{ name, datatype: "FP32" as const, shape, graph, data }];
};
const gains = tensorOf("float32", [6], [1, 0.5, 0.25, 2, -1, 1]);

const cases: Readonly<Record<string, Case>> = {
  "rnn-lstm": { loop: { states: { h0: "hn", c0: "cn" } }, inputs: frame("x", [1, 6], [1, 6]), outputs: ["y"] },
  "rnn-gru": { loop: { states: { state_in: "state_out" } }, inputs: frame("x", [1, 3, 6], [1, 3, 6]), outputs: ["y"] },
  "rnn-time-first": {
    loop: { states: { h_0: "h_n", c_0: "c_n" } },
    inputs: frame("input", [1, 5, 6], [5, 1, 6]),
    outputs: ["output"],
  },
  "rnn-batch-last": { loop: { states: { state: "next_state" } }, inputs: frame("x", [1, 6], [6, 1]), outputs: ["y"] },
  "rnn-mixed": {
    loop: { states: { mean: "mean_out", total: "total_out", seen: "seen_out", count: "count_out" } },
    inputs: frame("x", [1, 6], [1, 6]),
    outputs: ["y", "tens"],
  },
  "rnn-past": {
    loop: { states: { past_key: "present_key" }, initial: { past_key: [1, 0, 4] } },
    inputs: frame("x", [1, 6], [1, 6]),
    outputs: ["y"],
  },
  "rnn-unnamed": {
    loop: { states: { memory: "updated" } },
    inputs: frame("frame", [1, 1, 6], [1, 1, 6]),
    outputs: ["score"],
  },
  "rnn-fixed": { loop: { states: { h0: "hn", c0: "cn" } }, inputs: frame("x", [1, 6], [1, 6]), outputs: ["y"] },
  "rnn-rate": {
    loop: { states: { state: "stateN" }, constants: { gains } },
    inputs: (random) => [
      ...frame("x", [1, 6], [1, 6])(random),
      { name: "rate", datatype: "INT64", shape: [], graph: [], data: [random.unit() < 0.5 ? 8000 : 16000] },
    ],
    outputs: ["y"],
  },
};

const SEQUENCES = 12;
const STEPS = 8;

describe("recurrent models as exported", () => {
  const served = useFleet({ gateways: 1, workers: 1, models: Object.keys(cases), env: { BATON_LOG_LEVEL: "debug" } });

  it.each(Object.entries(cases))("%s answers as a bare loop", async (model, { loop, inputs, outputs }) => {
    const random = seededRandom(7);
    const file = join(root, "test/fixtures/models", model, "1/model.onnx");
    const bare = await BareLoop.open({ ...loop, file });
    const told = Array.from({ length: SEQUENCES }, () => Array.from({ length: STEPS }, () => inputs(random)));
    const answers = await Promise.all(
      told.map(async (steps, i) => {
        const given: Awaited<ReturnType<typeof ask>>[] = [];
        for (const [at, tensors] of steps.entries()) {
          const parameters = { sequence_id: i + 1, sequence_start: at === 0, sequence_end: at === STEPS - 1 };
          const sent = tensors.map(({ name, datatype, shape, data }) => input(name, datatype, shape, data));
          given.push(await ask(served.url, model, { parameters, inputs: sent }));
        }
        return given;
      }),
    );
    for (const [i, steps] of told.entries()) {
      bare.begin();
      for (const [at, tensors] of steps.entries()) {
        const feeds = tensors.map(({ name, datatype, graph, data }): [string, Tensor] => {
          return [name, tensorOf(datatype === "INT64" ? "int64" : "float32", graph, data)];
        });
        const expected = await bare.step(Object.fromEntries(feeds));
        const answer = answers[i]?.[at];
        expect(answer?.error).toBeUndefined();
        expect(Object.keys(answer?.outputs ?? {})).toEqual(outputs);
        for (const output of outputs) {
          expect(difference(answer?.outputs[output] ?? [], expected[output] ?? [])).toBeLessThan(1e-5);
        }
      }
    }
  });
});
