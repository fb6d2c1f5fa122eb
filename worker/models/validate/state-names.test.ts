import { describe, expect, it } from "vitest";
import type { ModelConfig } from "#shared/model/config.js";
import type { GraphMetadata } from "../../onnx/graph.js";
import { nameStates, stemPairs } from "./state-names.js";
import { readConfigText } from "./tutorial.js";

describe("stemPairs", () => {
  it.each([
    ["h", "hn", "h"],
    ["h0", "hn", "h"],
    ["state", "stateN", "state"],
    ["a_in", "a_out", "a"],
    ["a", "a_out", "a"],
    ["past_a", "present_a", "a"],
    ["a", "next_a", "a"],
    ["a", "new_a", "a"],
    ["a", "a_next", "a"],
    ["a", "a_new", "a"],
    ["a", "out_a", "a"],
    ["in_a", "out_a", "a"],
    ["prev_a", "next_a", "a"],
    ["past.a", "present.a", "a"],
    ["INPUT_STATE", "OUTPUT_STATE", "STATE"],
  ])("pairs %s and %s by %s", (input, output, stem) => {
    expect(stemPairs([input], [output])).toEqual([{ stem, input, output }]);
  });

  it.each([
    ["input", "output"],
    ["x", "y"],
    ["a_in", "b_out"],
    ["a_in", "next_a"],
    ["past_a", "a_out"],
    ["in", "out"],
  ])("does not pair %s and %s", (input, output) => {
    expect(stemPairs([input], [output])).toEqual([]);
  });
});

const graphOf = (inputs: readonly string[], outputs: readonly string[]): GraphMetadata => {
  const tensors = (names: readonly string[]) =>
    names.map((name) => ({ name, datatype: "FP32" as const, dims: [-1, 2, 1024] }));
  return { inputs: tensors(inputs), outputs: tensors(outputs) };
};

const one = 'state { name: "lstm_state" data_type: TYPE_FP32 dims: [ 2, 1024 ] }';
const named = (states: string, inputs: readonly string[], outputs: readonly string[]) => {
  const text = `input { name: "X" } output { name: "Y" } sequence_batching { ${states} }`;
  const { config, stateNames } = readConfigText(Buffer.from(text), "config.pbtxt");
  return nameStates(config, stateNames, graphOf(["X", ...inputs], ["Y", ...outputs]));
};
const pairsOf = ({ sequence_batching: sequence }: ModelConfig): string[] =>
  (sequence?.state ?? []).map((state) => `${state.input_name}/${state.output_name} ${state.dims.join()}`);

describe("nameStates", () => {
  it.each<[inputs: string[], outputs: string[], pairs: string[]]>([
    [["lstm_state_in"], ["lstm_state_out"], ["lstm_state_in/lstm_state_out 2,1024"]],
    [["lstm_state"], ["lstm_state_out"], ["lstm_state/lstm_state_out 2,1024"]],
    [["lstm_state"], ["lstm_state_next"], ["lstm_state/lstm_state_next 2,1024"]],
    [["past_lstm_state"], ["present_lstm_state"], ["past_lstm_state/present_lstm_state 2,1024"]],
    [
      ["lstm_state_h_in", "lstm_state_c_in"],
      ["lstm_state_h_out", "lstm_state_c_out"],
      ["lstm_state_h_in/lstm_state_h_out 2,1024", "lstm_state_c_in/lstm_state_c_out 2,1024"],
    ],
    [
      ["lstm_state_in", "lstm_states_in"],
      ["lstm_states_out", "lstm_state_out"],
      ["lstm_state_in/lstm_state_out 2,1024"],
    ],
  ])("finds in %j and %j the states %j", (inputs, outputs, pairs) => {
    const { config, warnings } = named(one, inputs, outputs);
    expect(pairsOf(config)).toEqual(pairs);
    expect(warnings).toHaveLength(1);
  });

  it("names the tensors in a warning, and leaves other states as they are", () => {
    const other = 'state { input_name: "A" output_name: "B" dims: 1 }';
    const { config, warnings } = named(`${other} ${one}`, ["A", "lstm_state_in"], ["B", "lstm_state_out"]);
    expect(pairsOf(config)).toEqual(["A/B 1", "lstm_state_in/lstm_state_out 2,1024"]);
    expect(warnings).toEqual([
      'sequence_batching.state[1].name: "lstm_state" is read as input_name: "lstm_state_in" output_name: "lstm_state_out"',
    ]);
  });

  it("takes the name of the input itself, and no tensor that the configuration gives away already", () => {
    const { config } = named(one.replace('"lstm_state"', '"h0"'), ["h0"], ["hn"]);
    expect(pairsOf(config)).toEqual(["h0/hn 2,1024"]);
    expect(() => named(one.replace('"lstm_state"', '"X"'), [], ["X_out"])).toThrow("state 'X' finds no input");
  });

  it("refuses a name without a pair, and says what to write", () => {
    expect(() => named(one, ["h0", "c0"], ["hn", "cn"])).toThrow(
      "state 'lstm_state' finds no input and output of the model, such as 'lstm_state_in' and 'lstm_state_out': " +
        'write state { input_name: "h0 or c0" output_name: "hn or cn" data_type: TYPE_FP32 dims: [ 2, 1024 ] }',
    );
  });

  it("refuses a name whose tensors are not clear, and names them all", () => {
    expect(() => named(one, ["lstm_state"], ["lstm_state_out", "new_lstm_state"])).toThrow(
      "state 'lstm_state' may be 'lstm_state' with 'lstm_state_out', 'lstm_state' with 'new_lstm_state': " +
        'write which, as in state { input_name: "lstm_state" output_name: "lstm_state_out" data_type: TYPE_FP32',
    );
  });

  it("lets a state of variable size begin empty where it is the past, and else asks what it begins with", () => {
    const growing = 'state { name: "key" data_type: TYPE_FP32 dims: [ 4, -1, 16 ] }';
    const { config } = named(growing, ["past_key"], ["present_key"]);
    expect(config.sequence_batching?.state[0]?.initial_state).toEqual([
      { name: "empty", data_type: "TYPE_FP32", dims: [4, 0, 16], zero_data: true },
    ]);
    expect(() => named(growing, ["key_in"], ["key_out"])).toThrow(
      "state 'key_in' has no fixed size ([4,-1,16]): say what it begins with, such as " +
        'state { input_name: "key_in" output_name: "key_out" data_type: TYPE_FP32 dims: [ 4, -1, 16 ] initial_state {',
    );
  });
});
