/** Triton's `infer`, `generate` and `generate_stream`: answers, options, and every refusal. */
import { deflateSync, gzipSync } from "node:zlib";
import type { Recorder } from "../recording/recorder.js";

const SIXTEEN = Array.from({ length: 16 }, (_, i) => i);
const int32 = (name: string, data: unknown = SIXTEEN, more: object = {}) => ({
  name,
  datatype: "INT32",
  shape: [1, 16],
  data,
  ...more,
});
const two = { inputs: [int32("INPUT0"), int32("INPUT1")] };
const one = (more: object) => ({ inputs: [{ ...int32("INPUT0"), ...more }, int32("INPUT1")] });
const step = (value: number, parameters: object = {}) => ({
  parameters,
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [value] }],
});
const SIMPLE = "/v2/models/simple/infer";

export async function inference(api: Recorder): Promise<void> {
  await answers(api);
  await binaries(api);
  await refusals(api);
  await steps(api);
  await otherModels(api);
  await generations(api);
}

async function answers(api: Recorder): Promise<void> {
  for (const path of [SIMPLE, "/v2/models/simple/versions/1/infer", "/v2/models/simple/versions/2/infer"])
    await api.post(path, two);
  for (const more of [
    { id: "mine" },
    { outputs: [{ name: "OUTPUT1" }] },
    { outputs: [{ name: "OUTPUT1" }, { name: "OUTPUT0" }] },
    { parameters: { priority: 1 } },
    { parameters: { timeout: 60_000_000 } },
    { parameters: { own: "word", number: 3, truth: true } },
    { parameters: null },
    { unknown: 1 },
    { id: 7 },
    { outputs: [] },
    { outputs: [{ name: "NONE" }] },
    { outputs: [{ name: "OUTPUT0" }, { name: "OUTPUT0" }] },
    { outputs: [{ name: "OUTPUT0", parameters: { classification: 2 } }] },
    { outputs: [{ name: "OUTPUT0", parameters: { shared_memory_region: "r", shared_memory_byte_size: 64 } }] },
    { outputs: [{ name: "OUTPUT0", parameters: { binary_data: "yes" } }] },
    { outputs: {} },
    { parameters: { triton_secret: 1 } },
    { parameters: { priority: -1 } },
    { parameters: { priority: "high" } },
    { parameters: { timeout: "soon" } },
    { parameters: { timeout: -1 } },
    { parameters: { sequence_id: 4 } },
    { parameters: [] },
  ]) {
    await api.post(SIMPLE, { ...two, ...more });
  }
  const bytes = JSON.stringify(two);
  for (const [encoding, body] of [
    ["gzip", gzipSync(bytes)],
    ["deflate", deflateSync(bytes)],
    ["gzip", Buffer.from("no gzip")],
    ["br", Buffer.from(bytes)],
  ] as const) {
    await api.post(SIMPLE, body, { "content-encoding": encoding });
  }
  for (const encoding of ["gzip", "deflate", "br", "gzip, deflate", "*"])
    await api.post(SIMPLE, two, { "accept-encoding": encoding });
  for (let i = 0; i < 2; i += 1) await api.post(SIMPLE, two, { "idempotency-key": "one" });
  await api.post(SIMPLE, { ...two, id: "other" }, { "idempotency-key": "one" });
  await api.post(SIMPLE, two, { "idempotency-key": "" });
  await api.post(SIMPLE, two, { "idempotency-key": "x".repeat(256) });
  await api.post(SIMPLE, two, { "x-request-id": "chosen-by-the-client" });
  await api.post(SIMPLE, two, { "x-request-id": "no id: too odd" });
}

async function binaries(api: Recorder): Promise<void> {
  const block = Buffer.alloc(64);
  for (let i = 0; i < 16; i += 1) block.writeInt32LE(i, 4 * i);
  const input = (name: string, size: unknown = 64) => ({
    name,
    datatype: "INT32",
    shape: [1, 16],
    parameters: { binary_data_size: size },
  });
  const send = async (json: object, blocks: readonly Buffer[], length?: string) => {
    const head = Buffer.from(JSON.stringify(json));
    await api.post(SIMPLE, Buffer.concat([head, ...blocks]), {
      "inference-header-content-length": length ?? String(head.length),
    });
  };
  const both = { inputs: [input("INPUT0"), input("INPUT1")] };
  await send(both, [block, block]);
  await send({ ...both, parameters: { binary_data_output: true } }, [block, block]);
  await send({ ...both, outputs: [{ name: "OUTPUT0", parameters: { binary_data: true } }] }, [block, block]);
  await send(both, [block]);
  await send(both, [block, block, block]);
  await send({ inputs: [input("INPUT0", 60), input("INPUT1")] }, [block, block]);
  await send({ inputs: [input("INPUT0", -1), input("INPUT1")] }, [block, block]);
  await send({ inputs: [input("INPUT0", "64"), input("INPUT1")] }, [block, block]);
  for (const length of ["0", "-1", "many", "99999"]) await send(both, [block, block], length);
}

async function refusals(api: Recorder): Promise<void> {
  for (const body of [
    "",
    "{",
    "[]",
    "null",
    "{}",
    '{"inputs": 1}',
    '{"inputs": []}',
    '{"a":1,"a":2}',
    "\u0000",
    "{} x",
  ])
    await api.post(SIMPLE, body);
  for (const more of [
    { name: "NONE" },
    { name: "INPUT1" },
    { name: 3 },
    { name: undefined },
    { datatype: "FP32" },
    { datatype: "WORDS" },
    { datatype: undefined },
    { shape: [1, 15] },
    { shape: [16] },
    { shape: [9, 16] },
    { shape: [0, 16], data: [] },
    { shape: [-1, 16] },
    { shape: "1,16" },
    { shape: undefined },
    { shape: [1, 1.5] },
    { shape: [2 ** 53, 16] },
    { data: SIXTEEN.slice(1) },
    { data: [...SIXTEEN, 16] },
    { data: undefined },
    { data: "text" },
    { data: [SIXTEEN] },
    { data: SIXTEEN.map(String) },
    { data: SIXTEEN.map((i) => i + 0.5) },
    { data: SIXTEEN.map((i) => i * 2 ** 31) },
    { data: SIXTEEN.map(() => null) },
    { parameters: { shared_memory_region: "r" } },
    { other: 1 },
  ]) {
    await api.post(SIMPLE, one(more));
  }
  await api.post(SIMPLE, { inputs: [int32("INPUT0")] });
  await api.post(SIMPLE, { inputs: [int32("INPUT0"), int32("INPUT0")] });
  await api.post("/v2/models/absent/infer", two);
  await api.post("/v2/models/simple/versions/x/infer", two);
  await api.post(SIMPLE, `{"inputs": [], "id": "${"x".repeat(70_000)}"}`);
  await api.post(SIMPLE, Buffer.alloc(140_000), { "inference-header-content-length": "10" });
  await api.post(SIMPLE, `${"[".repeat(2_000)}${"]".repeat(2_000)}`);
}

async function steps(api: Recorder): Promise<void> {
  const path = "/v2/models/accumulate/infer";
  await api.post(path, step(1));
  await api.post(path, step(1, { sequence_id: 1 }));
  await api.post(path, step(2, { sequence_id: 1, sequence_start: true }));
  await api.post(path, step(3, { sequence_id: 1 }));
  await api.post(path, step(3, { sequence_id: 1, sequence_step: 2 }));
  await api.post(path, step(3, { sequence_id: 1, sequence_step: 9 }));
  await api.post(path, step(4, { sequence_id: 1, sequence_end: true }));
  await api.post(path, step(5, { sequence_id: 1 }));
  await api.post(path, step(1, { sequence_id: "word", sequence_start: true, sequence_end: true }));
  await api.post(path, step(1, { sequence_id: 0, sequence_start: true }));
  await api.post(path, step(1, { sequence_id: -3, sequence_start: true }));
  await api.post(path, step(1, { sequence_id: 1.5, sequence_start: true }));
  await api.post(path, step(1, { sequence_id: "x".repeat(300), sequence_start: true }));
  await api.post(path, step(1, { sequence_id: 3, sequence_start: "yes" }));
  await api.post(path, step(1, { sequence_start: true }));
  for (let i = 0; i < 2; i += 1)
    await api.post(path, step(9, { sequence_id: 2, sequence_start: true }), { "idempotency-key": "first" });
  await api.post("/v2/models/chain/infer", {
    parameters: { sequence_id: "a", sequence_start: true },
    inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [9_007_199_254_740_993n.toString()] }],
  });
}

async function otherModels(api: Recorder): Promise<void> {
  const send = (model: string, datatype: string, shape: number[], data: unknown) =>
    api.post(`/v2/models/${model}/infer`, { inputs: [{ name: "INPUT0", datatype, shape, data }] });
  await send("echo-bytes", "BYTES", [1, 2], ["ä", ""]);
  await send("echo-bytes", "BYTES", [1, 2], [1, 2]);
  await send("echo-fp16", "FP16", [1, 2], [1, 2]);
  for (const model of ["picky", "codes", "slow"]) {
    for (const value of [0, 1, 13]) {
      const name = { picky: "INPUT", codes: "CODE", slow: "N" }[model];
      const shape = model === "slow" ? [1] : [1, 1];
      await api.post(`/v2/models/${model}/infer`, { inputs: [{ name, datatype: "INT64", shape, data: [value] }] });
    }
  }
}

async function generations(api: Recorder): Promise<void> {
  const greedy = { temperature: 0, max_tokens: 6 };
  for (const path of ["/v2/models/tale-gpt/generate", "/v2/models/tale-gpt/generate_stream"]) {
    for (const body of [
      { text_input: "Once", ...greedy },
      { text_input: "Once", parameters: greedy },
      { text_input: "Once", ...greedy, stop: ["e"] },
      { text_input: "Once", ...greedy, id: "mine" },
      { text_input: "Once", max_tokens: 4, seed: 7 },
      { text_input: "Once", ...greedy, return_log_probs: true },
      { text_input: "Once", ...greedy, n: 2 },
      { text_input: "Once", ...greedy, exclude_input_in_output: false },
      { text_input: "Once", ...greedy, sequence_id: `${path.length}`, sequence_start: true },
      { text_input: "and", ...greedy, sequence_id: `${path.length}`, sequence_end: true },
      { text_input: "and", ...greedy, sequence_id: "nowhere" },
      {},
      { text_input: 1 },
      { text_input: "" },
      { text_input: ["a", "b"], ...greedy },
      { text_input: "Once", ...greedy, max_tokens: -1 },
      { text_input: "Once", ...greedy, max_tokens: 1e9 },
      { text_input: "Once", ...greedy, temperature: "hot" },
      { text_input: "Once", ...greedy, seed: 1, temperature: 9 },
      { text_input: "Once", ...greedy, top_p: 2 },
      { text_input: "Once", ...greedy, top_k: -1 },
      { text_input: "Once", ...greedy, seed: "x" },
      { text_input: "Once", ...greedy, unknown: 1 },
      { text_input: "Once", ...greedy, stop: [1] },
      { text_input: "word ".repeat(2_000), ...greedy },
      "[",
      "",
    ]) {
      await api.post(path, body);
    }
  }
  await api.post("/v2/models/simple/generate", { INPUT0: SIXTEEN, INPUT1: SIXTEEN });
  await api.post("/v2/models/simple/generate_stream", { INPUT0: SIXTEEN, INPUT1: SIXTEEN });
  await api.post("/v2/models/echo-bytes/generate", { INPUT0: ["a", "b"] });
  await api.post("/v2/models/tale-gpt/infer", {
    parameters: { temperature: 0, max_tokens: 6 },
    inputs: [{ name: "text_input", datatype: "BYTES", shape: [1], data: ["Once"] }],
  });
  await api.post("/v2/models/absent/generate", { text_input: "Once" });
}
