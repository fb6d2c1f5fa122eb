/**
 * Recurrent models as PyTorch exports them, with batch axes at any place, are served with nothing
 * but `sequence_batching { }`, and answer as a bare loop does.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Tensor } from "onnxruntime-node";
import { startFleet, type Fleet } from "../support/fleet/fleet.js";
import { seededRandom, type Random } from "../support/fleet/random.js";
import { root } from "../support/fleet/root.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { BareLoop, difference, tensorOf, type Loop } from "../support/recurrent/bare-loop.js";
import { ask, input } from "./ask.js";

/** An input of a step in the clients' form, with the graph's shape. */
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

/** How many sequences run at a time; fewer of a model whose steps run one by one. */
const sequencesOf = (model: string): number => (model === "rnn-fixed" ? 4 : 12);
const STEPS = 8;

/** Exported like `rnn-lstm`, but for two states that look the same. */
const AMBIGUOUS = "rnn-ambiguous";

describe("recurrent models as exported", () => {
  const served = useFleet({
    models: [...Object.keys(cases), AMBIGUOUS, "accumulate"],
    configs: { accumulate: "max_batch_size: 8 sequence_batching { max_sequence_idle_microseconds: 60000000 }" },
    serving: Object.keys(cases),
    env: { BATON_LOG_LEVEL: "debug" },
  });

  it.each(Object.entries(cases))("%s answers as a bare loop", async (model, { loop, inputs, outputs }) => {
    const random = seededRandom(7);
    const file = join(root, "test/fixtures/models", model, "1/model.onnx");
    const bare = await BareLoop.open({ ...loop, file });
    const told = Array.from({ length: sequencesOf(model) }, () => Array.from({ length: STEPS }, () => inputs(random)));
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
    const batches = log("batch").filter((fields) => fields["model"] === model);
    const together = batches.filter(({ rows, runs }) => Number(rows) > 1 && Number(runs) < Number(rows));
    if (model !== "rnn-fixed") expect(together.length).toBeGreaterThan(0);
  });

  /** The worker's log lines with this message. */
  function log(message: string): Readonly<Record<string, unknown>>[] {
    const lines = served.fleet.workers[0]?.process.lines ?? [];
    return lines.map(({ fields }) => fields).filter((fields) => fields["msg"] === message);
  }

  it("show what was completed, in the configuration and in one line of the log", async () => {
    const config = (await (await fetch(`${served.url}/v2/models/rnn-lstm/config`)).json()) as object;
    const state = (input_name: string, output_name: string) => ({
      input_name,
      output_name,
      data_type: "TYPE_FP32",
      dims: [2, 10],
    });
    expect(config).toMatchObject({
      max_batch_size: 8,
      input: [{ name: "x", data_type: "TYPE_FP32", dims: [6] }],
      output: [{ name: "y", data_type: "TYPE_FP32", dims: [3] }],
      sequence_batching: { state: [state("h0", "hn"), state("c0", "cn")] },
      parameters: { "batch_axis:h0": { string_value: "1" }, "batch_axis:cn": { string_value: "1" } },
    });
    const told = log("completed from the model's graph").filter(({ model }) => model === "rnn-lstm");
    expect(told.map(({ inferred }) => inferred)).toEqual([
      "states h0/hn [2,10], c0/cn [2,10]; batch axes h0 1, hn 1, c0 1, cn 1",
    ]);
  });

  it("are given the controls that have their usual names", async () => {
    const sums: unknown[] = [];
    for (const [i, value] of [20, 22, 5].entries()) {
      const parameters = { sequence_id: 77, sequence_start: i === 0, sequence_end: i === 2 };
      const { outputs } = await ask(served.url, "accumulate", {
        parameters,
        inputs: [input("INPUT", "INT32", [1, 1], [value])],
      });
      sums.push([outputs["OUTPUT"], outputs["CORRID_OUT"], outputs["END_OUT"]].flat());
    }
    expect(sums).toEqual([
      [20, 77, 0],
      [42, 77, 0],
      [47, 77, 1],
    ]);
  });

  it("have only what clients give and get in their metadata", async () => {
    const metadata = (await (await fetch(`${served.url}/v2/models/rnn-rate`)).json()) as object;
    expect(metadata).toMatchObject({
      inputs: [
        { name: "x", datatype: "FP32", shape: [-1, 6] },
        { name: "rate", datatype: "INT64", shape: [] },
      ],
      outputs: [{ name: "y", datatype: "FP32", shape: [-1, 10] }],
    });
  });

  it("are refused with all candidates where their states are not clear", async () => {
    const index = await fetch(`${served.url}/v2/repository/index`, { method: "POST" });
    const rows = (await index.json()) as { name: string; state: string; reason?: string }[];
    const row = rows.find(({ name }) => name === AMBIGUOUS);
    expect(row).toMatchObject({ state: "UNAVAILABLE" });
    expect(row?.reason).toMatch(
      /'a' with 'p', 'a' with 'q', 'b' with 'p', 'b' with 'q' .* state \{ input_name: "a" output_name: "p" /,
    );
  });

  it.each<[what: string, inputs: object[], error: RegExp]>([
    [
      "a constant that is sent",
      [input("x", "FP32", [1, 6], [1, 2, 3, 4, 5, 6]), input("gains", "FP32", [6], [1, 1, 1, 1, 1, 1])],
      /unexpected inference input 'gains' for model 'rnn-rate'/,
    ],
    [
      "an input without rows that has some",
      [input("x", "FP32", [1, 6], [1, 2, 3, 4, 5, 6]), input("rate", "INT64", [1, 1], [8000])],
      /unexpected shape for input 'rate' for model 'rnn-rate'. Expected \[\], got \[1,1\]/,
    ],
    [
      "two rows for a sequence",
      [input("x", "FP32", [2, 6], Array(12).fill(1)), input("rate", "INT64", [], [8000])],
      /must specify batch-size 1/,
    ],
  ])("refuse %s", async (_, inputs, error) => {
    const parameters = { sequence_id: "refused", sequence_start: true };
    const answer = await ask(served.url, "rnn-rate", { parameters, inputs });
    expect(answer.status).toBe(400);
    expect(answer.error).toMatch(error);
  });
});

describe("a recurrent model without a configuration", () => {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startFleet({ workers: 0, models: ["rnn-lstm"] });
    rmSync(join(fleet.folder, "models/rnn-lstm/config.pbtxt"));
    await fleet.addWorker();
    await fleet.whenServing();
  });
  afterAll(() => fleet.dispose());

  it("is served stateless, with the graph's own inputs, outputs and shapes", async () => {
    const random = seededRandom(3);
    const x = floats(random, 12);
    const [h0, c0] = [floats(random, 40), floats(random, 40)];
    const answer = await ask(fleet.urls[0] ?? "", "rnn-lstm", {
      inputs: [input("x", "FP32", [2, 6], x), input("h0", "FP32", [2, 2, 10], h0), input("c0", "FP32", [2, 2, 10], c0)],
    });
    const bare = await BareLoop.open({ file: join(root, "test/fixtures/models/rnn-lstm/1/model.onnx"), states: {} });
    const expected = await bare.begin().step({
      x: tensorOf("float32", [2, 6], x),
      h0: tensorOf("float32", [2, 2, 10], h0),
      c0: tensorOf("float32", [2, 2, 10], c0),
    });
    for (const name of ["y", "hn", "cn"]) {
      expect(difference(answer.outputs[name] ?? [], expected[name] ?? [])).toBeLessThan(1e-5);
    }
  });
});
