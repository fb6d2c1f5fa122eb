import { describe, expect, it } from "vitest";
import type { GraphMetadata } from "../../onnx/graph.js";
import { modelConfig } from "../pbtxt/schema.js";
import { parseTextFormat } from "../pbtxt/text-format.js";
import { readConstants } from "./constants.js";

describe("readConstants", () => {
  /** The size -1 is the batch. */
  const of: GraphMetadata = {
    inputs: [
      { name: "x", datatype: "FP32", dims: [-1, 6] },
      { name: "sr", datatype: "INT64", dims: [] },
      { name: "gains", datatype: "FP32", dims: [3] },
      { name: "mode", datatype: "INT32", dims: [-1, 2] },
      { name: "flag", datatype: "BOOL", dims: [1] },
    ],
    outputs: [{ name: "y", datatype: "FP32", dims: [-1, 3] }],
  };
  const read = (name: string, value: string) => {
    const parameter = `parameters { key: 'constant_input:${name}' value: { string_value: '${value}' } }`;
    const config = parseTextFormat(modelConfig, Buffer.from(parameter), "config.pbtxt");
    return readConstants({ ...config, max_batch_size: 8 }, of);
  };

  it.each([
    ["sr", "16000", [], [16_000n]],
    ["gains", "1, -0.5,2e3", [3], [1, -0.5, 2000]],
    ["mode", "7,-8", [1, 2], [7, -8]],
    ["flag", "true", [1], [1]],
  ])("%s is %s", (name, value, shape, elements) => {
    const [tensor] = read(name, value);
    const bytes = new Uint8Array(tensor?.data ?? []).buffer;
    const arrays = { INT64: BigInt64Array, INT32: Int32Array, FP32: Float32Array, BOOL: Uint8Array };
    const array = new arrays[tensor?.datatype as keyof typeof arrays](bytes);
    expect([tensor?.shape, [...array]]).toEqual([shape, elements]);
  });

  it.each([
    ["rate", "1", "parameters['constant_input:rate']: the graph's inputs are flag, gains, mode, sr, x"],
    ["sr", "1,2", "parameters['constant_input:sr'] has 2 values, but the input 'sr' takes 1"],
    ["gains", "1", "parameters['constant_input:gains'] has 1 value, but the input 'gains' takes 3"],
    ["mode", "1", "parameters['constant_input:mode'] has 1 value, but the input 'mode' takes 2 for each row"],
    ["sr", "16 kHz", "parameters['constant_input:sr']: '16 kHz' is no INT64"],
    ["sr", "", "parameters['constant_input:sr']: '' is no INT64"],
    ["sr", "99999999999999999999", "parameters['constant_input:sr']: '99999999999999999999' is no INT64"],
    ["mode", "3000000000,1", "parameters['constant_input:mode']: '3000000000' is no INT32"],
    ["flag", "yes", "parameters['constant_input:flag']: 'yes' is no BOOL"],
  ])("refuses %s as %j", (name, value, error) => {
    expect(() => read(name, value)).toThrow(error);
  });
});
