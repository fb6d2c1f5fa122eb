import { describe, expect, it } from "vitest";
import { servedModel } from "../../test/fixtures/served-models.js";
import { modelConfig } from "../models/pbtxt/schema.js";
import { parseTextFormat } from "../models/pbtxt/text-format.js";
import { samplesOf, type Sample } from "./samples.js";
import type { ServingModel } from "./serving.js";

const served = servedModel("m", {
  maxBatchSize: 4,
  inputs: [
    { name: "X", datatype: "FP32", dims: [2] },
    { name: "T", datatype: "BYTES", dims: [-1] },
  ],
  outputs: [{ name: "Y", datatype: "FP32", dims: [2] }],
  sequence: { maxIdleMs: 1_000 },
});
const values = { no: Buffer.from([0]), yes: Buffer.from([1]) };
const model = {
  controls: [
    { kind: "start", tensor: "START", datatype: "BOOL", values },
    { kind: "end", tensor: "END", datatype: "BOOL", values },
  ],
  states: [{ input: "S", output: "N", datatype: "FP32", dims: [1], initialShape: [1, 1], initial: Buffer.alloc(4) }],
} as unknown as ServingModel;
const files = new Map([["x", Buffer.from(Float32Array.of(3, 4, 5).buffer)]]);

function samples(text: string): Sample[] {
  const config = parseTextFormat(modelConfig, Buffer.from(`model_warmup { name: "w" ${text} }`), "config.pbtxt");
  return samplesOf(model, served, config, files);
}

const input = (key: string, type: string, dims: string, data: string): string =>
  `inputs { key: "${key}" value { data_type: TYPE_${type} dims: ${dims} ${data} } }`;
const x = input("X", "FP32", "2", 'input_data_file: "x"');
const t = input("T", "STRING", "3", "random_data: true");

describe("the samples of a warm-up", () => {
  it("are requests of one row each, with the bytes of files and empty strings", () => {
    const [sample, ...others] = samples(`batch_size: 3 count: 2 ${t} ${x}`);
    expect(others).toEqual([]);
    expect([sample?.count, sample?.batch.length]).toEqual([2, 3]);
    const tensors = sample?.batch[2]?.request.tensors;
    expect(tensors?.map(({ name, shape }) => [name, shape])).toEqual([
      ["X", [1, 2]],
      ["T", [1, 3]],
    ]);
    expect(tensors?.map(({ data }) => [...data])).toEqual([[0, 0, 64, 64, 0, 0, 128, 64], Array(12).fill(0)]);
    expect(sample?.batch.map(({ sequence, delivery }) => [sequence, delivery.start, delivery.end])[0]).toEqual([
      undefined,
      true,
      true,
    ]);
  });

  it("give the controls and states that they list, and leave the others to the batcher", async () => {
    const start = input("START", "BOOL", "1", "zero_data: true");
    const state = input("S", "FP32", "1", 'input_data_file: "x"');
    const [sample] = samples(`batch_size: 1 ${x} ${t} ${start} ${state}`);
    expect(sample?.model.controls.map(({ tensor }) => tensor)).toEqual(["END"]);
    expect(sample?.batch[0]?.request.tensors.map(({ name, shape }) => [name, shape]).slice(2)).toEqual([
      ["START", [1, 1]],
    ]);
    const lookup = await sample?.batch[0]?.state;
    expect(lookup).toMatchObject({ kind: "found", tensors: [{ name: "S", shape: [1, 1] }] });
  });

  it("are left out with a batch_size of 0, and run once with a count of 0", () => {
    expect(samples(x)).toEqual([]);
    expect(samples(`batch_size: 1 ${x} ${t}`)[0]?.count).toBe(1);
  });

  it.each([
    [`batch_size: 5 ${x} ${t}`, "its batch_size 5 is more than 4"],
    [`batch_size: 1 ${x}`, "missing required input(s) ['T']"],
    [`batch_size: 1 ${x} ${t} ${input("Z", "FP32", "1", "zero_data: true")}`, "unexpected inference input 'Z'"],
    [`batch_size: 1 ${t} ${input("X", "FP64", "2", "zero_data: true")}`, "data-type is 'TYPE_FP64'"],
    [`batch_size: 1 ${t} ${input("X", "FP32", "3", "zero_data: true")}`, "Expected [-1,2], got [1,3]"],
    [`batch_size: 1 ${x} ${input("T", "STRING", "-1", "zero_data: true")}`, "all variable-size dimensions"],
    [`batch_size: 1 ${t} ${input("X", "FP32", "2", "")}`, "to have input_data_type set"],
    [`batch_size: 1 ${x} ${input("T", "STRING", "99999999999", "zero_data: true")}`, "input 'T' is too large"],
  ])("fail the load: %s", (text, reason) => {
    expect(() => samples(text)).toThrow(
      expect.objectContaining({
        name: "LoadError",
        message: expect.stringContaining(`failed to run warmup sample 'w': `) as unknown,
      }),
    );
    expect(() => samples(text)).toThrow(reason);
  });
});
