import { describe, expect, it } from "vitest";
import type { GraphMetadata } from "../onnx/graph.js";
import { modelConfig } from "./pbtxt/schema.js";
import { parseTextFormat } from "./pbtxt/text-format.js";
import { resolveConfig } from "./resolve.js";
import { completeDefaults, type DirectoryFacts } from "./validate/complete.js";

const facts: DirectoryFacts = { directory: "m", firstVersionFiles: ["model.onnx"], gpus: [] };
/** A model of sound: its rate has no batch axis. */
const graph: GraphMetadata = {
  inputs: [
    { name: "input", datatype: "FP32", dims: [-1, -1] },
    { name: "gain", datatype: "FP32", dims: [-1, -1] },
    { name: "sr", datatype: "INT64", dims: [] },
  ],
  outputs: [{ name: "output", datatype: "FP32", dims: [-1, 1] }],
};
const rest = ["input", "gain"];
const tensors =
  rest.map((name) => `input { name: '${name}' data_type: TYPE_FP32 dims: -1 }`).join(" ") +
  " output { name: 'output' data_type: TYPE_FP32 dims: 1 }";
const rate = "input { name: 'sr' data_type: TYPE_INT64 dims: 1 }";
const constant = (name: string): string =>
  `parameters { key: 'constant_input:${name}' value: { string_value: '16000' } }`;

function resolve(text: string): string[] {
  const config = completeDefaults(parseTextFormat(modelConfig, Buffer.from(text), "config.pbtxt"), facts);
  return resolveConfig(config, facts, graph).input.map(({ name }) => name);
}

describe("resolveConfig", () => {
  it.each([`max_batch_size: 8 ${tensors}`, "max_batch_size: 8"])(
    "leaves a constant out of the inputs of %j",
    (text) => {
      expect(resolve(`${text} ${constant("sr")}`)).toEqual(rest);
    },
  );

  it.each([
    ["listed tensors", `${tensors} ${rate} ${constant("rate")}`],
    ["no tensors", constant("rate")],
    ["a constant that is there, too", `${tensors} ${constant("sr")} ${constant("rate")}`],
  ])("names a constant that the graph does not have, with %s", (_, text) => {
    const named = "parameters['constant_input:rate']: the graph's inputs are gain, input, sr";
    expect(() => resolve(`max_batch_size: 8 ${text}`)).toThrow(named);
  });

  it("names a constant that is also listed under input", () => {
    const named = "input 'sr' has a constant value, so it must not be listed under input";
    expect(() => resolve(`max_batch_size: 8 ${tensors} ${rate} ${constant("sr")}`)).toThrow(named);
  });
});
