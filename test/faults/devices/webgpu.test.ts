import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startFleet, type Fleet } from "../../support/fleet/fleet.js";
import type { Member } from "../../support/fleet/member.js";
import { ownConfig } from "../../support/fleet/repository.js";
import { softwareGpu, unlessSkipped } from "../../support/fleet/software-gpu.js";
import { ask, input } from "../../spec/ask.js";
import { viewFleet, type FleetView } from "./fleet-view.js";

/** Models with states: the input of a step, and the judged part of its answer. */
const recurrent: readonly {
  readonly model: string;
  readonly output: string;
  readonly tensor: (phase: number) => unknown;
}[] = [
  { model: "word-lstm", output: "PROBS", tensor: (phase) => input("TOKEN", "INT64", [1, 1], [(phase * 7) % 600]) },
  { model: "lstm-128", output: "Y", tensor: (phase) => input("X", "FP32", [1, 128], wave(128, phase)) },
  {
    model: "my_lstm_model",
    output: "OUTPUT__0",
    tensor: (phase) => input("INPUT__0", "FP32", [1, 128], wave(128, phase)),
  },
  { model: "lstm-1024", output: "Y", tensor: (phase) => input("X", "FP32", [1, 1024], wave(1024, phase)) },
];
const models = [...recurrent.map(({ model }) => model), "tale-gpt", "simple"];
/** The number of sequences at once, and the steps of each. */
const SEQUENCES = 4;
const STEPS = 5;
/** As a share of the largest number. */
const TOLERANCE = 1e-4;

/** The outputs of the sequences of a model with states, step by step. */
type Told = readonly (readonly (readonly number[])[])[];

describe.skipIf(softwareGpu === undefined)(`a worker on WebGPU${unlessSkipped}`, () => {
  let fleet: Fleet;
  let url = "";
  let onCpu: Answers;
  let onGpu: Answers;
  let digests: readonly [string[], string[]];
  let shown: FleetView;

  interface Answers {
    /** By model. */
    readonly told: ReadonlyMap<string, Told>;
    readonly tale: string;
    readonly sum: readonly unknown[] | undefined;
  }

  /** All models compute at once, so that their threads meet at the GPU. */
  async function answers(): Promise<Answers> {
    const told = Promise.all(recurrent.map(async (one) => [one.model, await sequences(one)] as const));
    const tale = fetch(`${url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "tale-gpt", prompt: "The fox", max_tokens: 12, temperature: 0 }),
    });
    const numbers = Array.from({ length: 16 }, (_, i) => i);
    const sum = ask(url, "simple", {
      inputs: [input("INPUT0", "INT32", [1, 16], numbers), input("INPUT1", "INT32", [1, 16], numbers)],
    });
    const { choices } = (await (await tale).json()) as { choices: { text: string }[] };
    return {
      told: new Map(await told),
      tale: choices[0]?.text ?? "",
      sum: (await sum).outputs["OUTPUT0"],
    };
  }

  /** Runs all sequences of a model at once, so that some of their steps share batches. */
  function sequences({ model, output, tensor }: (typeof recurrent)[number]): Promise<Told> {
    return Promise.all(
      Array.from({ length: SEQUENCES }, async (_, sequence) => {
        const steps: number[][] = [];
        for (let step = 0; step < STEPS; step++) {
          const { outputs, error } = await ask(url, model, {
            parameters: { sequence_id: sequence + 1, sequence_start: step === 0, sequence_end: step === STEPS - 1 },
            inputs: [tensor(sequence + step)],
          });
          expect(error).toBeUndefined();
          steps.push(outputs[output] as number[]);
        }
        return steps;
      }),
    );
  }

  const serve = async (env: Record<string, string>): Promise<Member> => {
    const worker = await fleet.addWorker(env);
    await fleet.whenServing();
    return worker;
  };

  beforeAll(async () => {
    // The model's own configuration asks for the CPU.
    const tutorial = ownConfig("my_lstm_model")?.replace("kind: KIND_CPU", "") ?? "";
    fleet = await startFleet({ workers: 0, models, configs: { my_lstm_model: tutorial } });
    [url = ""] = fleet.urls;
    const cpu = await serve({ BATON_PROVIDERS: "cpu" });
    onCpu = await answers();
    const before = (await viewFleet(url)).models.map(({ digest }) => digest);
    await cpu.terminate();
    await serve({ BATON_PROVIDERS: "webgpu", ...softwareGpu });
    onGpu = await answers();
    shown = await viewFleet(url);
    digests = [before, shown.models.map(({ digest }) => digest)];
  }, 240_000);
  afterAll(() => fleet?.dispose());

  it.each(recurrent)("gives the CPU's answers for sequences of $model", ({ model }) => {
    const difference = farthest(onGpu.told.get(model), onCpu.told.get(model));
    expect(difference).toBeLessThan(TOLERANCE);
    // The GPU rounds sums otherwise: results that are equal to the last bit were not computed
    // there.
    expect(difference).toBeGreaterThan(0);
  });

  it("gives the CPU's answers for a generator and for a stateless model", () => {
    expect(onGpu.tale).toBe(onCpu.tale);
    expect(onGpu.tale.length).toBeGreaterThan(10);
    expect(onGpu.sum).toEqual(Array.from({ length: 16 }, (_, i) => 2 * i));
  });

  it("lives on where the threads of several models meet at the GPU", () => {
    for (const worker of fleet.workers) expect(worker.logged("worker process died")).toBe(0);
  });

  it("is shown with its device, and each of its models with the provider", () => {
    const [worker] = shown.workers;
    expect(worker?.device).toEqual({
      provider: "webgpu",
      gpu: 0,
      name: "SwiftShader (software)",
      memory: { total_bytes: expect.any(Number) as number, used_bytes: expect.any(Number) as number },
    });
    expect(worker?.models.map(({ name, provider, gpu }) => [name, provider, gpu]).sort()).toEqual(
      [...models].sort().map((name) => [name, "webgpu", 0]),
    );
    const ofDevices = (warning: string) => /^it(s answers| runs on)/.test(warning);
    expect(shown.models.flatMap(({ warnings = [] }) => warnings.filter(ofDevices))).toEqual([]);
  });

  it("serves what a worker without a GPU serves: files and configuration make the digest", () => {
    expect(digests[1]).toEqual(digests[0]);
  });
});

/** Numbers from -1 to 1. */
function wave(length: number, phase: number): number[] {
  return Array.from({ length }, (_, i) => Math.sin(phase + i / 9));
}

/** @returns the largest difference, as a share of the largest number */
function farthest(found: Told = [], expected: Told = []): number {
  const [ours, theirs] = [found.flat(2), expected.flat(2)];
  expect(ours).toHaveLength(theirs.length);
  expect(theirs.length).toBeGreaterThan(SEQUENCES * STEPS);
  const largest = Math.max(...theirs.map(Math.abs));
  return Math.max(...theirs.map((value, i) => Math.abs(value - (ours[i] ?? Number.NaN)))) / largest;
}
