/**
 * The two programs of tutorials on Triton's sequence batcher: `my_lstm_model` with the tutorial's
 * configuration, whose client sends only a sequence id, and a generator that reads TEXT. The
 * requests come from Triton's client for Python, recorded byte for byte but for ids and tensors.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { onCpu } from "../../worker/onnx/providers.js";
import { makeTensor, openSession, type OrtTensor } from "../../worker/onnx/runtime.js";
import { makeTurns } from "../../worker/onnx/turns.js";
import { bytesElement } from "../fixtures/requests.js";
import { tutorialBatching } from "../fixtures/tutorial.js";
import { configWith } from "../support/fleet/repository.js";
import { root } from "../support/fleet/root.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { exchange, inferBody, type Answer } from "../support/gateway/http.js";
import { pythonWithClient, runPython } from "./python.js";

const tutorial = readFileSync(join(root, "infra/tutorial/config.pbtxt"), "utf8");
/** The model whose sequences expire after a moment. */
const brief = configWith("accumulate", "implicit_start", "true").replace(
  /max_sequence_idle_microseconds: \d+/,
  "max_sequence_idle_microseconds: 50000",
);
const names = `
  input { name: "PROMPT" data_type: TYPE_STRING dims: [ 1, 1 ] }
  output { name: "STORY" data_type: TYPE_STRING dims: [ 1, 1 ] }`;

const served = useFleet({
  workers: 2,
  models: ["my_lstm_model", "accumulate", "chain", "gen-cheap", "gen-mha"],
  configs: { accumulate: brief, "gen-mha": names, my_lstm_model: tutorial },
});

const post = (model: string, json: string, tensor: Buffer): Promise<Answer> => {
  const { headers, body } = inferBody(json, tensor);
  return exchange(`${served.url}/v2/models/${model}/infer`, body, {
    "user-agent": "python/gevent-http-client-2.0.8",
    ...headers,
  });
};

interface Flags {
  readonly start?: boolean;
  readonly end?: boolean;
}

/** Sends one step as the client does. @returns OUTPUT__0 */
async function step(id: number, input: Float32Array, { start = false, end = false }: Flags = {}): Promise<number[]> {
  const parameters = `{"sequence_id":${id},"sequence_start":${start},"sequence_end":${end},"binary_data_output":true}`;
  const json = `{"inputs":[{"name":"INPUT__0","shape":[1,128],"datatype":"FP32","parameters":{"binary_data_size":512}}],"parameters":${parameters}}`;
  const answer = await post("my_lstm_model", json, Buffer.from(input.buffer));
  expect([answer.status, answer.json]).toEqual([200, expect.stringContaining('"shape":[1,10]')]);
  return [...new Float32Array(new Uint8Array(answer.blocks).buffer)];
}

/** The answer of a generator to flat JSON, by its most probable tokens. */
async function generate(model: string, body: object): Promise<Record<string, unknown>> {
  const asked = { max_tokens: 8, temperature: 0, ...body };
  const answer = await exchange(`${served.url}/v2/models/${model}/generate`, asked);
  return JSON.parse(answer.json) as Record<string, unknown>;
}

/** Numbers that are exact in 32 bits, equal to `vector` in triton_tutorial.py. */
const vectorOf = (sequence: number, step: number): Float32Array =>
  Float32Array.from({ length: 128 }, (_, i) => (((sequence * 31 + step * 7 + i * 13) % 17) - 8) / 8);

/** The outputs of ONNX Runtime for the steps of one sequence, one after the other. */
async function bareLoop(inputs: readonly Float32Array[]): Promise<number[][]> {
  const session = await openSession({
    modelFile: join(root, "infra/models/my_lstm_model/1/model.onnx"),
    placement: onCpu,
    turns: makeTurns(),
    intraOpThreads: 1,
    graphOptimization: "all",
  });
  let state = new Float32Array(2 * 1024);
  const outputs: number[][] = [];
  for (const input of inputs) {
    const ran = await session.run({
      INPUT__0: makeTensor("FP32", input, [1, 128]),
      lstm_state_in: makeTensor("FP32", state, [1, 2, 1024]),
    });
    state = floatsOf(ran["lstm_state_out"]);
    outputs.push([...floatsOf(ran["OUTPUT__0"])]);
  }
  await session.release();
  return outputs;
}

/** Copies a tensor's values, because the next run may overwrite them. */
function floatsOf(tensor: OrtTensor | undefined): Float32Array<ArrayBuffer> {
  if (tensor?.type !== "float32") throw new TypeError("the model gave no FP32 output");
  return Float32Array.from(tensor.data as Float32Array);
}

function expectClose(found: readonly (readonly number[])[], expected: readonly (readonly number[])[]): void {
  expect(found.length).toBe(expected.length);
  const distances = found.flatMap((row, i) => row.map((value, j) => Math.abs(value - (expected[i]?.[j] ?? NaN))));
  expect(distances).toHaveLength(found.length * 10);
  expect(Math.max(...distances)).toBeLessThan(1e-5);
}

describe("my_lstm_model", () => {
  it("shows genuine fields only", async () => {
    const config = (await (await fetch(`${served.url}/v2/models/my_lstm_model/config`)).json()) as object;
    expect(config).toMatchObject({
      platform: "onnxruntime_onnx",
      max_batch_size: 8,
      instance_group: [{ count: 1, kind: "KIND_CPU", gpus: [] }],
      parameters: { implicit_start: { string_value: "true" } },
    });
    expect(config).toHaveProperty("sequence_batching", tutorialBatching("lstm_state_in", "lstm_state_out"));
    expect(config).not.toHaveProperty("dynamic_batching");
  });

  it("is warned of in one line for each field, by model, word and genuine field", () => {
    const [worker] = served.fleet.workers;
    const lines = worker?.lives.flatMap((life) => life.lines.map(({ fields }) => fields)) ?? [];
    const said = lines.filter(({ model, warning }) => model === "my_lstm_model" && warning !== undefined);
    const fields = [
      ["tensorflow_savedmodel", "onnxruntime_onnx"],
      ["instance_group[0].gpus", "KIND_CPU"],
      ["dynamic_batching.default_batch_size", "oldest.preferred_batch_size"],
      ["dynamic_batching.max_queue_delay_microseconds", "oldest.max_queue_delay_microseconds"],
      ["dynamic_batching.preserve_ordering", "oldest.preserve_ordering"],
      ["dynamic_batching.timeout_action", "default_queue_policy.timeout_action"],
      ["sequence_batching.timeout_action", "default_queue_policy.timeout_action"],
      ["reusable_batch.max_size", "max_batch_size"],
      ["reusable_batch.candidate_batch_size", "oldest.preferred_batch_size"],
      ['state[0].name: "lstm_state"', 'input_name: "lstm_state_in" output_name: "lstm_state_out"'],
    ] as const;
    for (const [word, genuine] of fields) {
      const about = said.filter(({ warning }) => String(warning).includes(word));
      expect(about.map(({ warning, level }) => [String(warning).includes(genuine), level])).toEqual([[true, 40]]);
    }
  });

  /**
   * Runs this many sequences side by side, with ids from `from`, and compares each with a bare
   * loop.
   */
  async function runAtOnce(from: number, sequences: number, steps: number, onStep?: () => void): Promise<void> {
    const inputs = Array.from({ length: sequences }, (_, s) => Array.from({ length: steps }, (_, t) => vectorOf(s, t)));
    const outputs = await Promise.all(
      inputs.map(async (own, s) => {
        const answers: number[][] = [];
        for (const input of own) {
          answers.push(await step(from + s, input));
          onStep?.();
        }
        return answers;
      }),
    );
    for (const [s, own] of inputs.entries()) expectClose(outputs[s] ?? [], await bareLoop(own));
  }

  it("remembers several sequences at once, of which none is begun with START", async () => {
    await runAtOnce(1, 12, 8);
  });

  it("remembers them also where a worker is killed while they begin, and again later", async () => {
    const [first, second] = served.fleet.workers;
    if (first === undefined || second === undefined) throw new Error("two workers were started");
    let steps = 0;
    const back: Promise<unknown>[] = [];
    await runAtOnce(101, 12, 12, () => {
      steps += 1;
      if (steps === 4) back.push(first.restart());
      if (steps === 100) back.push(Promise.all(back).then(() => second.restart()));
    });
    await Promise.all(back);
    expect(back).toHaveLength(2);
  });

  it("begins anew after END, and with an explicit START", async () => {
    const [a, b, c] = [vectorOf(1, 1), vectorOf(2, 2), vectorOf(3, 3)];
    const found = [
      await step(77, a),
      await step(77, b, { end: true }),
      await step(77, b),
      await step(77, c),
      await step(77, a, { start: true }),
    ];
    expectClose(found, [...(await bareLoop([a, b])), ...(await bareLoop([b, c])), ...(await bareLoop([a]))]);
  });

  it("sends an output by its name", async () => {
    const parameters = '{"sequence_id":78,"sequence_start":false,"sequence_end":true}';
    const json = `{"inputs":[{"name":"INPUT__0","shape":[1,128],"datatype":"FP32","parameters":{"binary_data_size":512}}],"outputs":[{"name":"OUTPUT__0","parameters":{"binary_data":true}}],"parameters":${parameters}}`;
    const answer = await post("my_lstm_model", json, Buffer.from(vectorOf(0, 0).buffer));
    expect(JSON.parse(answer.json)).toMatchObject({
      outputs: [{ name: "OUTPUT__0", shape: [1, 10], parameters: { binary_data_size: 40 } }],
      parameters: { sequence_step: 1 },
    });
  });

  it("refuses a step that is not the first where no sequence is, and begins none", async () => {
    const ask = async (number: number): Promise<unknown> => {
      const json = `{"inputs":[{"name":"INPUT__0","shape":[1,128],"datatype":"FP32","parameters":{"binary_data_size":512}}],"parameters":{"sequence_id":79,"sequence_step":${number}}}`;
      const { status, json: body } = await post("my_lstm_model", json, Buffer.from(vectorOf(0, 0).buffer));
      return [status, (JSON.parse(body) as { code?: string }).code];
    };
    expect(await ask(3)).toEqual([409, "ahead_of_state"]);
    expect(await ask(1)).toEqual([200, undefined]);
  });
});

describe("implicit_start", () => {
  const add = async (model: string, id: number, value: number, flags: object = {}): Promise<unknown> => {
    const type = model === "chain" ? "INT64" : "INT32";
    const answer = await exchange(`${served.url}/v2/models/${model}/infer`, {
      parameters: { sequence_id: id, ...flags },
      inputs: [{ name: "INPUT", datatype: type, shape: [1, 1], data: [value] }],
    });
    const { error, outputs } = JSON.parse(answer.json) as { error?: string; outputs?: { data: number[] }[] };
    return error ?? outputs?.[0]?.data[0];
  };

  it("tells the model of the START, and begins anew after the sequence has expired", async () => {
    expect(await add("accumulate", 5, 30, { sequence_end: true })).toBe(30);
    await add("accumulate", 6, 1000);
    // A poll that comes before the expiry resumes the sequence.
    await expect.poll(() => add("accumulate", 6, 7), { interval: 400 }).toBe(7);
  });

  it("is for models that say so: others want START", async () => {
    expect(await add("chain", 7, 1)).toBe(
      "inference request for sequence 7 to model 'chain' must specify the START flag on the first request of the sequence",
    );
  });
});

describe("a generator", () => {
  const ask = async (model: string, name: string, more: string): Promise<Answer> => {
    const text = bytesElement("once upon");
    const json = `{"inputs":[{"name":"${name}","shape":[1,1],"datatype":"BYTES","parameters":{"binary_data_size":${text.length}}}],${more}}`;
    return post(model, json, text);
  };
  it("answers TEXT with TEXT, in one response although it is asked for a stream", async () => {
    const { text_output: expected } = await generate("gen-cheap", { text_input: "once upon" });
    expect(expected).toMatch(/./);
    const parameters = '"max_tokens":8,"stream":true,"temperature":0';
    const all = await ask("gen-cheap", "TEXT", `"parameters":{"binary_data_output":true,${parameters}}`);
    expect(JSON.parse(all.json)).toMatchObject({ outputs: [{ name: "TEXT", datatype: "BYTES", shape: [1, 1] }] });
    expect(all.blocks).toEqual(bytesElement(String(expected)));
    const named = `"outputs":[{"name":"TEXT","parameters":{"binary_data":true}}],"parameters":{${parameters}}`;
    expect((await ask("gen-cheap", "TEXT", named)).blocks).toEqual(all.blocks);
  });

  it("has the names that its config.pbtxt gives", async () => {
    const { STORY: expected } = await generate("gen-mha", { PROMPT: "once upon" });
    const answer = await ask(
      "gen-mha",
      "PROMPT",
      '"parameters":{"binary_data_output":true,"max_tokens":8,"temperature":0}',
    );
    expect(JSON.parse(answer.json)).toMatchObject({ outputs: [{ name: "STORY", shape: [1, 1] }] });
    expect(answer.blocks).toEqual(bytesElement(String(expected)));
    const metadata = (await (await fetch(`${served.url}/v2/models/gen-mha`)).json()) as object;
    expect(metadata).toMatchObject({ inputs: [{ name: "PROMPT", shape: [1, 1] }], outputs: [{ name: "STORY" }] });
    expect((await ask("gen-mha", "TEXT", '"parameters":{}')).status).toBe(400);
  });
});

describe.skipIf(pythonWithClient === undefined)(
  "the programs with the Triton HTTP client for Python (skipped: no python3 with tritonclient.http)",
  () => {
    it("run unmodified", async () => {
      const printed = JSON.parse(await runPython("triton_tutorial.py", new URL(served.url).host)) as {
        readonly steps: readonly (readonly (readonly (readonly number[])[])[])[];
        readonly text: string;
      };
      for (const [s, outputs] of printed.steps.entries()) {
        const inputs = outputs.map((_, t) => vectorOf(s, t));
        expectClose(outputs.map(([row]) => row ?? []), await bareLoop(inputs)); // prettier-ignore
      }
      expect(printed.text).toBe((await generate("gen-cheap", { text_input: "once upon" }))["text_output"]);
    });
  },
);
