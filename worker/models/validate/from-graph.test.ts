import { describe, expect, it } from "vitest";
import type { ModelConfig } from "#shared/model/config.js";
import type { Datatype } from "#shared/model/datatype.js";
import type { GraphMetadata, GraphTensor } from "../../onnx/graph.js";
import { resolveConfig } from "../resolve.js";
import { modelConfig } from "../pbtxt/schema.js";
import { parseTextFormat } from "../pbtxt/text-format.js";
import { completeDefaults, type DirectoryFacts } from "./complete.js";
import { completeFromGraph, defaultCompletion } from "./from-graph.js";
import { describeInferred } from "./inferred.js";
import { judge } from "./judge.js";

const parse = (text: string): ModelConfig => parseTextFormat(modelConfig, Buffer.from(text), "config.pbtxt");
const facts: DirectoryFacts = { directory: "m", firstVersionFiles: ["model.onnx"], gpus: [] };
const stageA = (text: string): ModelConfig => completeDefaults(parse(text), facts);

const graph: GraphMetadata = {
  inputs: [
    { name: "A", datatype: "FP32", dims: [-1, 4] },
    { name: "B", datatype: "BYTES", dims: [-1] },
  ],
  outputs: [{ name: "C", datatype: "INT64", dims: [-1, -1, 2] }],
};
const unbatched: GraphMetadata = {
  inputs: [{ name: "A", datatype: "FP32", dims: [] }],
  outputs: [{ name: "C", datatype: "INT64", dims: [3] }],
};
const stageB = (text: string, of: GraphMetadata = graph, autoComplete = true): ModelConfig =>
  completeFromGraph(parse(text), of, { ...defaultCompletion, autoComplete });

describe("completeFromGraph", () => {
  const summary = (config: ModelConfig): string =>
    [
      config.max_batch_size,
      ...[...config.input, ...config.output].map(
        ({ name, data_type, dims, reshape }) =>
          `${name}:${data_type.slice(5)}${JSON.stringify(dims)}${reshape ? `>${JSON.stringify(reshape.shape)}` : ""}`,
      ),
      config.dynamic_batching ? "dynamic" : "-",
    ].join(" ");
  const io = "input { name: 'A' } output { name: 'C' }";
  it.each<[text: string, of: GraphMetadata, expected: string]>([
    ["", graph, "4 A:FP32[4] B:STRING[1]>[] C:INT64[-1,2] dynamic"],
    ["max_batch_size: 0", graph, "4 A:FP32[4] B:STRING[1]>[] C:INT64[-1,2] dynamic"],
    ["max_batch_size: 8", graph, "8 A:FP32[4] B:STRING[1]>[] C:INT64[-1,2] dynamic"],
    ["max_batch_size: 1", graph, "1 A:FP32[4] B:STRING[1]>[] C:INT64[-1,2] -"],
    ["sequence_batching { }", graph, "4 A:FP32[4] B:STRING[1]>[] C:INT64[-1,2] -"],
    ["output { name: 'C' }", graph, "4 A:FP32[4] B:STRING[1]>[] C:INVALID[] dynamic"],
    ["input { name: 'A' }", graph, "4 A:INVALID[] C:INT64[-1,2] dynamic"],
    ["batch_input { } output { name: 'C' }", graph, "0 C:INVALID[] -"],
    [io, graph, "0 A:INVALID[] C:INVALID[] -"],
    ["", unbatched, "0 A:FP32[1] C:INT64[3] -"],
  ])("makes %j (graph %#) %j", (text, of, expected) => {
    expect(summary(stageB(text, of))).toBe(expected);
  });

  it("does nothing when auto-complete is off", () => {
    expect(summary(stageB("", graph, false))).toBe("0 -");
  });

  it("refuses a batch size that the graph cannot have", () => {
    expect(() => stageB("name: 'm' max_batch_size: 2", unbatched)).toThrow(
      "autofill failed for model 'm': model does not support batching while non-zero max_batch_size is specified",
    );
  });
});

describe("resolveConfig", () => {
  it("serves a model without a configuration", () => {
    const config = resolveConfig(stageA(""), facts, graph);
    expect(config.max_batch_size).toBe(4);
    expect(config.dynamic_batching?.preferred_batch_size).toEqual([4]);
    expect(config.input.map(({ name }) => name)).toEqual(["A", "B"]);
  });

  it("refuses a model all of whose outputs are states", () => {
    const text = "sequence_batching { state { input_name: 'B' output_name: 'C' data_type: TYPE_STRING dims: 1 } }";
    expect(() => resolveConfig(stageA(text), facts, graph)).toThrow("unable to load model 'm', must specify 'output'");
  });

  it("refuses missing tensors when auto-complete is off", () => {
    const options = { ...defaultCompletion, autoComplete: false };
    expect(() => resolveConfig(stageA(""), facts, graph, options)).toThrow(
      "unable to load model 'm', configuration expects 0 inputs, model provides 2",
    );
  });
});

/**
 * Tensors as `name TYPE [dims]`, by default FP32. A name as a dim is the symbol of a variable size.
 */
function tensors(text: string): GraphTensor[] {
  return text.split(/(?<=\]),\s*/).map((one) => {
    const [, name = "", type = "FP32", shape = ""] = /^(\S+?):? (?:([A-Z]\w+) )?\[(.*)\]$/.exec(one) ?? [];
    const sizes = shape === "" ? [] : shape.split(",").map((size) => size.trim());
    const dims = sizes.map((size) => (/^-?\d+$/.test(size) ? Number(size) : -1));
    const symbols = sizes.map((size) => (/^[a-z]/i.test(size) ? size : undefined));
    return { name, datatype: type as Datatype, dims, symbols };
  });
}

const graphOf = (inputs: string, outputs: string): GraphMetadata => ({
  inputs: tensors(inputs),
  outputs: tensors(outputs),
});
const resolve = (text: string, of: GraphMetadata): ModelConfig => resolveConfig(stageA(text), facts, of);
const inferred = (text: string, of: GraphMetadata): string | undefined =>
  describeInferred(stageA(text), resolve(text, of));
const alone = "sequence_batching { }";
const batch8 = `max_batch_size: 8 ${alone}`;

describe("sequence_batching alone", () => {
  it.each<[what: string, text: string, of: GraphMetadata, said: string]>([
    [
      "PyTorch's LSTM",
      alone,
      graphOf("x [b,6], h0 [2,b,10], c0 [2,b,10]", "y [b,3], hn [2,b,10], cn [2,b,10]"),
      "states h0/hn [2,10], c0/cn [2,10]; batch axes h0 1, c0 1, hn 1, cn 1; max_batch_size 4",
    ],
    [
      "axes without names, and an output of which nothing is known (Silero)",
      `${batch8} parameters { key: 'constant_input:sr' value: { string_value: '16000' } }`,
      graphOf("input [-1,-1], state [2,-1,128], sr INT64 []", "output [-1,1], stateN [-1,-1,-1]"),
      "states state/stateN [2,128]; batch axes state 1, stateN 1",
    ],
    [
      "time before batch",
      batch8,
      graphOf("input [time,batch,6], h_0 [1,batch,4]", "output [time,batch,4], h_n [1,batch,4]"),
      "states h_0/h_n [1,4]; batch axes input 1, output 1, h_0 1, h_n 1",
    ],
    [
      "outputs without names",
      batch8,
      graphOf("input [t,n,6], s_in [1,n,4]", "output [dim_0,dim_1,4], s_out [1,dim_2,4]"),
      "states s_in/s_out [1,4]; batch axes input 1, output 1, s_in 1, s_out 1",
    ],
    [
      "outputs without names, and the batch before time",
      batch8,
      graphOf("input [n,t,6], s_in [2,n,4]", "output [dim_0,dim_1,4], s_out [2,dim_2,4]"),
      "states s_in/s_out [2,4]; batch axes s_in 1, s_out 1",
    ],
    [
      "one layer, and axes without names",
      batch8,
      graphOf("x [-1,6], h [1,-1,4]", "y [-1,3], hn [1,-1,4]"),
      "states h/hn [1,4]; batch axes h 1, hn 1",
    ],
    [
      "one layer, and a batch of another name",
      batch8,
      graphOf("x [streams,6], h [1,streams,4]", "y [streams,3], hn [1,hn_dim_1,4]"),
      "states h/hn [1,4]; batch axes h 1, hn 1",
    ],
    [
      "a batch of 1 and a cache that grows",
      alone,
      graphOf("x [1,8], past_key [1,4,t,16]", "y [1,8], present_key [1,4,t1,16]"),
      "states past_key/present_key [1,4,-1,16]",
    ],
    [
      "a batch of 1, a time axis, and a cache that grows",
      alone,
      graphOf("x [1,T,8], past_key [1,4,t,16]", "y [1,T,8], present_key [1,4,t1,16]"),
      "states past_key/present_key [1,4,-1,16]",
    ],
    [
      "no batch, and a cache that grows",
      alone,
      graphOf("x [1,8], past_key [4,t,16]", "y [1,8], present_key [4,t1,16]"),
      "states past_key/present_key [4,-1,16]",
    ],
    [
      "the batch last",
      batch8,
      graphOf("x [6,b], state [2,10,b]", "y [10,b], next_state [2,10,b]"),
      "states state/next_state [2,10]; batch axes x 1, y 1, state 2, next_state 2",
    ],
    [
      "states whose names tell nothing",
      batch8,
      graphOf("frame [b,1,6], memory [2,b,10]", "score [b,1,10], updated [2,b,10]"),
      "states memory/updated [2,10]; batch axes memory 1, updated 1",
    ],
    [
      "a size that only one end of a state tells",
      batch8,
      graphOf("frame [b,1,-1], memory [b,16]", "score INT64 [b,1,1], updated [b,-1]"),
      "states memory/updated [16]",
    ],
    [
      "different types, and a number for each row",
      batch8,
      graphOf("x [b,4], mean [b,4], n INT64 [b]", "y [b,4], mean_out [b,4], n_out INT64 [b]"),
      "states mean/mean_out [4], n/n_out [1]",
    ],
    [
      "a cache that is empty at first",
      batch8,
      graphOf("x [b,4], past_k [b,2,past,8]", "y [b,4], present_k [b,2,total,8]"),
      "states past_k/present_k [2,-1,8]",
    ],
    [
      "controls by their names",
      batch8,
      graphOf("x [b,1], START INT32 [b,1], CORRID UINT64 [b,1], s [b,1]", "y [b,1], s_out [b,1]"),
      "states s/s_out [1]; controls START, CORRID",
    ],
    [
      "Triton's own names, among others of the same type and shape",
      batch8,
      graphOf(
        "INPUT INT32 [b,1], START INT32 [b,1], END INT32 [b,1], READY INT32 [b,1], CORRID UINT64 [b,1], INPUT_STATE INT32 [b,1]",
        "OUTPUT INT32 [b,1], CORRID_OUT UINT64 [b,1], END_OUT INT32 [b,1], OUTPUT_STATE INT32 [b,1]",
      ),
      "states INPUT_STATE/OUTPUT_STATE [1]; controls START, END, READY, CORRID",
    ],
    [
      "a batch of 1 and no other",
      alone,
      graphOf("x [1,6], h0 [2,1,10]", "y [1,3], hn [2,1,10]"),
      "states h0/hn [2,1,10]",
    ],
    [
      "only what the configuration does not account for",
      `max_batch_size: 8 input { name: 'x' data_type: TYPE_FP32 dims: 4 } output { name: 'y' data_type: TYPE_FP32 dims: 4 }
       sequence_batching { state { input_name: 'a' output_name: 'q' data_type: TYPE_FP32 dims: [ 2, 4 ] } }`,
      graphOf("x [b,4], a [2,b,4], c [2,b,4]", "y [b,4], p [2,b,4], q [2,b,4]"),
      "states c/p [2,4]; batch axes a 1, c 1, q 1, p 1",
    ],
    [
      "an axis that only the other end's parameter tells",
      `${batch8} parameters { key: 'batch_axis:s' value: { string_value: '1' } }`,
      graphOf("x [-1,4], s [2,-1,-1]", "y [-1,4], s_out [-1,-1,4]"),
      "states s/s_out [2,4]; batch axes s_out 1",
    ],
    [
      "axes that are written down",
      `${batch8} parameters { key: 'batch_axis:s' value: { string_value: '1' } }`,
      graphOf("x [-1,4], s [-1,-1,4]", "y [-1,4], s_out [2,-1,4]"),
      "states s/s_out [2,4]; batch axes s_out 1",
    ],
  ])("is completed: %s", (_, text, of, said) => {
    const found = inferred(text, of);
    expect(found?.split("; ").map((part) => part.split(/(?<=s) |, /).sort())).toEqual(
      said.split("; ").map((part) => part.split(/(?<=s) |, /).sort()),
    );
  });

  it("gives an empty cache no row to begin with", () => {
    const of = graphOf("x [b,4], past_k [b,past,8]", "y [b,4], present_k [b,total,8]");
    expect(resolve(batch8, of).sequence_batching?.state[0]?.initial_state).toEqual([
      { name: "empty", data_type: "TYPE_FP32", dims: [0, 8], zero_data: true },
    ]);
    const fixed = graphOf("x [1,8], past_key [1,4,t,16]", "y [1,8], present_key [1,4,t1,16]");
    expect(resolve(alone, fixed).sequence_batching?.state[0]?.initial_state[0]?.dims).toEqual([1, 4, 0, 16]);
  });

  it("leaves a model's answers to be what remains", () => {
    const of = graphOf("TOKEN INT64 [b,1], H [b,2,8]", "PROBS [b,9], NEXT INT64 [b,1], H_OUT [b,2,8]");
    const { input, output } = resolve(batch8, of);
    expect([input, output].map((list) => list.map(({ name }) => name))).toEqual([["TOKEN"], ["PROBS", "NEXT"]]);
  });

  it.each<[what: string, text: string, of: GraphMetadata, error: string | RegExp]>([
    [
      "states that are alike",
      batch8,
      graphOf("frame [b,6], a [2,b,10], b [2,b,10]", "score [b,3], p [2,b,10], q [2,b,10]"),
      "the states of m are not clear: 'a' with 'p', 'a' with 'q', 'b' with 'p', 'b' with 'q' may be states, but not all of them can be. Write those that are into sequence_batching, such as state { input_name: \"a\" output_name: \"p\" data_type: TYPE_FP32 dims: [ 2, 10 ] }, and the others under input and output",
    ],
    [
      "two outputs for one state",
      batch8,
      graphOf("x [b,6], h [2,b,10]", "y [b,3], hn [2,b,10], next_h [2,b,10]"),
      /not clear: 'h' with 'hn', 'h' with 'next_h' may be states/,
    ],
    [
      "no input left for clients",
      batch8,
      graphOf("audio [b,6], h [2,b,10]", "audio_out [b,6], hn [2,b,10]"),
      /not clear: 'audio' with 'audio_out', 'h' with 'hn' may be states/,
    ],
    [
      "a state that goes nowhere",
      batch8,
      graphOf("x [b,6], h [2,b,10]", "y [b,3], z [b,5]"),
      /^no output of m goes with input 'h' as its state: write state \{ input_name: "h" output_name: "<output>" data_type: TYPE_FP32 dims: \[ 2, 10 \] \}/,
    ],
    [
      "a state that comes back another",
      batch8,
      graphOf("x [b,6], h [2,b,10]", "y [b,3], hn [3,b,10]"),
      /goes with input 'h' as its state; 'hn' is TYPE_FP32 \[3,-1,10\], and 'h' TYPE_FP32 \[2,-1,10\]: write state/,
    ],
    [
      "an input that the configuration has forgotten",
      `${batch8} input { name: 'x' data_type: TYPE_FP32 dims: 6 }`,
      graphOf("x [b,6], more [b,2]", "y [b,3]"),
      /no output of m goes with input 'more' as its state: .* or else list it under input/,
    ],
    [
      "a batch where there is none",
      batch8,
      graphOf("x [1,6], h0 [2,1,10]", "y [1,3], hn [2,1,10]"),
      "autofill failed for model 'm': model does not support batching while non-zero max_batch_size is specified: 'y' [1,3], 'h0' [2,1,10], 'hn' [2,1,10] has no dimension of any size",
    ],
    [
      "an axis that cannot be found",
      batch8,
      graphOf("x [-1,-1,6], s [-1,-1,10]", "y [2,-1,3], s_out [-1,-1,10]"),
      'which axis of \'s\' [-1,-1,10] is the batch of m is not clear: write it, such as parameters { key: "batch_axis:s" value: { string_value: "0" } }',
    ],
    [
      "an output of another rank, and none of its axes told",
      batch8,
      graphOf("input [t,n,6], s_in [1,n,4]", "output [dim_0,dim_1], s_out [1,dim_2,4]"),
      "which axis of 'output' [-1,-1] is the batch of m is not clear: write it, such as parameters",
    ],
    [
      "a cache that grows beside a batch, without an axis for it",
      batch8,
      graphOf("x [batch,8], cache [4,t,16]", "y [batch,8], cache_out [4,t1,16]"),
      /'cache' \[4,-1,16\], 'cache_out' \[4,-1,16\] has no dimension that is clearly the batch, so max_batch_size has to be 0/,
    ],
    [
      "a cache that grows, beside a batch of 1",
      alone,
      graphOf("x [1,8], cache [4,t,16]", "y [1,8], cache_out [4,t1,16]"),
      /^state 'cache' has no fixed size \(\[4,-1,16\]\): say what it begins with, .* dims: \[ 4, 0, 16 \] zero_data: true/,
    ],
    [
      "an axis of a tensor that is not there",
      `${batch8} parameters { key: 'batch_axis:q' value: { string_value: '1' } }`,
      graphOf("x [b,6], h [2,b,10]", "y [b,3], hn [2,b,10]"),
      "parameters['batch_axis:q']: the graph's tensors with a batch axis are h, hn, x, y",
    ],
    [
      "an axis of a fixed size",
      `${batch8} parameters { key: 'batch_axis:h' value: { string_value: '2' } }`,
      graphOf("x [b,6], h [2,b,10]", "y [b,3], hn [2,b,10]"),
      "parameters['batch_axis:h'] is 2, but 'h' has the shape [2,-1,10], where a batch axis must be of any size (-1)",
    ],
    [
      "a state of no fixed size",
      batch8,
      graphOf("x [b,6], seen [b,t,4]", "y [b,3], seen_out [b,u,4]"),
      'state \'seen\' has no fixed size ([-1,4] without the batch): say what it begins with, such as state { input_name: "seen" output_name: "seen_out" data_type: TYPE_FP32 dims: [ -1, 4 ] initial_state { name: "initial" data_type: TYPE_FP32 dims: [ 0, 4 ] zero_data: true } }',
    ],
    [
      "a control of no control's type",
      batch8,
      graphOf("x [b,1], START INT64 [b,1], s [b,1]", "y [b,1], s_out [b,1]"),
      "input 'START' of m has the name of a control: a control's type is TYPE_INT32, TYPE_FP32 or TYPE_BOOL, but the graph has TYPE_INT64; list it under input instead",
    ],
  ])("is refused: %s", (_, text, of, error) => {
    expect(() => resolve(text, of)).toThrow(error);
  });
});

describe("models without sequences", () => {
  const of = graphOf("x [b,6], h0 [2,b,10]", "y [b,3], hn [2,b,10]");

  it("have the graph's own shapes where nothing is said", () => {
    const { max_batch_size, input } = resolve("", of);
    expect([max_batch_size, ...input.map(({ dims }) => dims)]).toEqual([0, [-1, 6], [2, -1, 10]]);
  });

  it("keep their batch first where Triton would batch them, whatever other sizes are called", () => {
    const points = graphOf("pts [B,N,3]", "cls [B,N,5]");
    for (const text of ["", "max_batch_size: 8"]) {
      const { input, parameters } = resolve(text, points);
      expect([input.map(({ dims }) => dims), parameters]).toEqual([[[-1, 3]], {}]);
    }
    expect(resolve("max_batch_size: 8", graphOf("x [T,N,3]", "y [T,N,5]")).parameters).toEqual({});
    const named = resolve("max_batch_size: 8", graphOf("x [T,batch,3]", "y [T,batch,5]"));
    expect(Object.keys(named.parameters)).toEqual(["batch_axis:x", "batch_axis:y"]);
  });

  it("take back the configuration of a number for each row", () => {
    const numbers = graphOf("x [batch]", "y [batch]");
    const { max_batch_size, input, output } = resolve("", numbers);
    const [x, y] = [...input, ...output].map(
      ({ name, dims, reshape }) =>
        `{ name: '${name}' data_type: TYPE_FP32 dims: [ ${dims.join()} ] reshape { shape: [ ${reshape?.shape.join() ?? "none"} ] } }`,
    );
    const printed = `max_batch_size: ${max_batch_size} input ${x} output ${y}`;
    expect(judge(parse(printed))).toEqual([]);
    expect(resolve(printed, numbers)).toMatchObject({ input, output });
  });

  it("have no batch in time, where the first axis is fixed at 1", () => {
    const speech = graphOf("x [1,time,80]", "y [1,time,29]");
    expect(resolve("", speech).input[0]?.dims).toEqual([1, -1, 80]);
    const error =
      "'y' [1,-1,29] has no dimension that is clearly the batch, so max_batch_size has to be 0, " +
      'unless a parameter names one, such as parameters { key: "batch_axis:y" value: { string_value: "1" } }';
    expect(() => resolve("max_batch_size: 8", speech)).toThrow(error);
    const told = (axis: string) => `parameters { key: 'batch_axis:${axis}' value: { string_value: '1' } }`;
    expect(resolve(`max_batch_size: 8 ${told("x")} ${told("y")}`, speech).input[0]?.dims).toEqual([1, 80]);
    const listed = (dims: string) => `input { name: 'x' data_type: TYPE_FP32 dims: [ ${dims}, 80 ] }
      output { name: 'y' data_type: TYPE_FP32 dims: [ ${dims}, 29 ] } max_batch_size: 8`;
    expect(() => resolve(listed("-1"), speech)).toThrow(/'x'.* first dimension must be -1; .* \[1,-1,80\]/);
    expect(resolve(listed("1"), speech).parameters["batch_axis:x"]?.string_value).toBe("1");
  });

  it("batch at any axis where batches are asked for", () => {
    const { max_batch_size, input } = resolve("max_batch_size: 8", of);
    expect([max_batch_size, ...input.map(({ dims }) => dims)]).toEqual([8, [6], [2, 10]]);
  });
});
