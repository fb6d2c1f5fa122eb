import { describe, expect, it } from "vitest";
import type { GraphMetadata } from "../onnx/graph.js";
import { modelConfig } from "./pbtxt/schema.js";
import { parseTextFormat } from "./pbtxt/text-format.js";
import { resolveConfig, resolveModel } from "./resolve.js";
import { completeDefaults, type DirectoryFacts } from "./validate/complete.js";
import { readConfigText } from "./validate/tutorial.js";

const facts: DirectoryFacts = { directory: "m", firstVersionFiles: ["model.onnx"], gpus: [] };
/** A model of sound, whose sampling rate has no batch axis. */
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

describe("resolveModel", () => {
  const lstm: GraphMetadata = {
    inputs: [
      { name: "X", datatype: "FP32", dims: [-1, 6] },
      { name: "lstm_h_in", datatype: "FP32", dims: [-1, 10] },
      { name: "lstm_c_in", datatype: "FP32", dims: [-1, 10] },
      { name: "START", datatype: "BOOL", dims: [-1, 1] },
    ],
    outputs: [
      { name: "Y", datatype: "FP32", dims: [-1, 3] },
      { name: "lstm_h_out", datatype: "FP32", dims: [-1, 10] },
      { name: "lstm_c_out", datatype: "FP32", dims: [-1, 10] },
    ],
  };
  const resolved = (name: string) => {
    const state = `state { name: '${name}' data_type: TYPE_FP32 dims: 10 }`;
    const read = readConfigText(Buffer.from(`max_batch_size: 4 sequence_batching { ${state} }`), "config.pbtxt");
    return resolveModel({ ...read, facts, config: completeDefaults(read.config, facts) }, lstm);
  };

  it("calls no state inferred for which a name of the configuration stands", () => {
    const { config, inferred, warnings } = resolved("lstm");
    expect(config.sequence_batching?.state.map((one) => one.input_name)).toEqual(["lstm_h_in", "lstm_c_in"]);
    expect(inferred).toBe("controls START");
    expect(warnings).toHaveLength(1);
  });

  it("says which state the configuration left out", () => {
    expect(resolved("lstm_h").inferred).toBe("states lstm_c_in/lstm_c_out [10]; controls START");
  });
});
