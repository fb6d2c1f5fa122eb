import { describe, expect, it } from "vitest";
import type { ModelConfig } from "#shared/model/config.js";
import type { GraphMetadata } from "../../onnx/graph.js";
import { completeDefaults } from "./complete.js";
import { modelConfig } from "../pbtxt/schema.js";
import { parseTextFormat } from "../pbtxt/text-format.js";
import { validateAgainstGraph } from "./graph.js";

function configOf(text: string): ModelConfig {
  const config = parseTextFormat(modelConfig, Buffer.from(text), "config.pbtxt");
  return completeDefaults(config, { directory: "m", firstVersionFiles: ["model.onnx"], gpus: [] });
}

const tensor = (name: string, dims: readonly number[], datatype: "FP32" | "INT32" | "BOOL" = "FP32") => ({
  name,
  datatype,
  dims,
});
const graphOf = (inputs: readonly ReturnType<typeof tensor>[], outputs = [tensor("O", [-1, -1])]): GraphMetadata => ({
  inputs,
  outputs,
});
const batched = graphOf([tensor("A", [-1, -1])]);
const plain = graphOf([tensor("A", [3, -1])], [tensor("O", [])]);
const ragged = graphOf([tensor("A", [-1])]);
const sequence = graphOf(
  [tensor("A", [-1, 2]), tensor("START", [-1, 1], "INT32"), tensor("S", [-1, -1])],
  [tensor("O", [-1, -1]), tensor("T", [-1, -1])],
);

const a = "input { name: 'A' data_type: TYPE_FP32 dims: 2 }";
const o = "output { name: 'O' data_type: TYPE_FP32 dims: -1 }";
const aPlain = "input { name: 'A' data_type: TYPE_FP32 dims: [ 3, 5 ] }";
const oPlain = "output { name: 'O' data_type: TYPE_FP32 dims: [ 1, 1 ] }";
const start = "control_input { name: 'START' control { int32_false_true: [ 0, 1 ] } }";
const state = "state { input_name: 'S' output_name: 'T' data_type: TYPE_FP32 dims: 7 }";
const batch = "max_batch_size: 4";

describe("validateAgainstGraph", () => {
  it.each<[text: string, graph: GraphMetadata]>([
    [`${batch} ${a} ${o}`, batched],
    [`${aPlain} ${oPlain}`, plain],
    [`${batch} ${a} ${o} sequence_batching { ${start} ${state} }`, sequence],
    [`${batch} input { name: 'A' data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true } ${o}`, ragged],
    [`${batch} input { name: 'A' data_type: TYPE_FP32 dims: 1 reshape { } } ${o}`, ragged],
    [
      `${aPlain} ${oPlain} input { name: 'W' data_type: TYPE_FP32 dims: 2 optional: true }`,
      { ...plain, initializers: [tensor("W", [2])] },
    ],
    [
      `${batch} ${a} ${o} batch_output { target_name: 'O' source_input: 'A' }`,
      graphOf([tensor("A", [-1, 2])], [tensor("O", [9])]),
    ],
    [`${batch} ${a} ${o}`, graphOf([tensor("A", [-1, 2])], [tensor("O", [-1, -1]), tensor("EXTRA", [1])])],
  ])("accepts %j on graph %#", (text, graph) => {
    expect(() => validateAgainstGraph(configOf(text), graph)).not.toThrow();
  });

  it.each<[text: string, graph: GraphMetadata, error: string]>([
    [o, batched, "unable to load model 'm', configuration expects 0 inputs, model provides 1"],
    [
      `${batch} ${a} ${o} sequence_batching { ${start} }`,
      sequence,
      "unable to load model 'm', configuration expects 2 inputs, model provides 3",
    ],
    [a, batched, "unable to load model 'm', must specify 'output'"],
    [
      "input { name: 'X' } output { name: 'O' }",
      graphOf([tensor("b", []), tensor("a", [])]),
      "unable to load model 'm', configuration expects 1 inputs, model provides 2",
    ],
    [
      "input [ { name: 'X' }, { name: 'a' } ] output { name: 'O' }",
      graphOf([tensor("b", []), tensor("a", [])]),
      "unexpected inference input 'X', allowed inputs are: a, b",
    ],
    [
      `${batch} ${a} output { name: 'X' data_type: TYPE_FP32 dims: 1 }`,
      batched,
      "unexpected inference output 'X', allowed outputs are: O",
    ],
    [
      `${batch} input { name: 'A' data_type: TYPE_INT32 dims: 2 } ${o}`,
      batched,
      "unable to load model 'm', configuration expects datatype TYPE_INT32 for input 'A', model provides TYPE_FP32",
    ],
    [
      `${batch} ${a} output { name: 'O' data_type: TYPE_STRING dims: -1 }`,
      batched,
      "unable to load model 'm', configuration expects datatype TYPE_STRING for output 'O', model provides TYPE_FP32",
    ],
    [
      `${batch} input { name: 'A' data_type: TYPE_FP32 dims: [ 3, 5 ] } ${o}`,
      plain,
      "model 'm', tensor 'A': for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is [3,-1], or a parameter 'batch_axis:A' must name another one that is",
    ],
    [
      `${batch} ${a} ${o}`,
      graphOf([tensor("A", [1, 2])], [tensor("O", [1, -1])]),
      "model 'm', tensor 'A': no dimension of its shape [1,2] is of any size, so all requests of a batch would share it, or else max_batch_size has to be 0; but the model configuration specifies shape [2]",
    ],
    [
      `${batch} ${a} output { name: 'O' data_type: TYPE_FP32 dims: 4 }`,
      batched,
      "model 'm', tensor 'O': the model expects 2 dimensions (shape [-1,-1]) but the model configuration specifies 2 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,4])",
    ],
    [
      `input { name: 'A' data_type: TYPE_FP32 dims: [ 4, 5 ] } ${oPlain}`,
      plain,
      "model 'm', tensor 'A': the model expects 2 dimensions (shape [3,-1]) but the model configuration specifies 2 dimensions (shape [4,5])",
    ],
    [
      `input { name: 'A' data_type: TYPE_FP32 dims: 3 } ${oPlain}`,
      plain,
      "model 'm', tensor 'A': the model expects 2 dimensions (shape [3,-1]) but the model configuration specifies 1 dimensions (shape [3])",
    ],
    [
      `${aPlain} output { name: 'O' data_type: TYPE_FP32 dims: 2 }`,
      plain,
      "unable to load model 'm', scalar tensor 'O', should only provide 1 in the model configuration when the model doesn't support batching. Model configuration provided: [2].",
    ],
    [
      `${batch} input { name: 'A' data_type: TYPE_FP32 dims: 1 allow_ragged_batch: true } ${o}`,
      batched,
      "unable to load model 'm', configuration expects model provides input with shape [-1] for ragged input 'A', model provides [-1,-1]",
    ],
    [
      `input { name: 'A' data_type: TYPE_FP32 dims: 1 allow_ragged_batch: true optional: true } ${o}`,
      { ...graphOf([]), initializers: [tensor("A", [-1])] },
      "unable to load model 'm', configuration expects model provides input with shape [-1] for ragged input 'A', which is not supported for optional input",
    ],
    [
      `${batch} ${a} ${o} input { name: 'W' optional: true }`,
      batched,
      "unable to load model 'm', optional input 'W' is not supported for models that support batching",
    ],
    [
      `${batch} ${a} ${o} sequence_batching { control_input { name: 'B' control { int32_false_true: [ 0, 1 ] } } ${state} }`,
      sequence,
      "configuration specified sequence control 'B', but model does not provide that input",
    ],
    [
      `${batch} ${a} ${o} sequence_batching { ${start} }`,
      graphOf([tensor("A", [-1, 2]), tensor("START", [-1, 2], "INT32")]),
      "unable to load model 'm', sequence control 'START' in model has dims [2] but dims [1] is expected",
    ],
    [
      `${batch} ${a} ${o} sequence_batching { ${start} }`,
      graphOf([tensor("A", [-1, 2]), tensor("START", [-1, 1], "BOOL")]),
      "unable to load model 'm', sequence control 'START', the model expects data-type TYPE_BOOL but the model configuration specifies data-type TYPE_INT32",
    ],
    [
      `${batch} ${a} ${o} sequence_batching { ${start} state { input_name: 'S' output_name: 'X' data_type: TYPE_FP32 dims: 7 } }`,
      sequence,
      "unexpected inference output 'X', allowed outputs are: O, T",
    ],
    [
      `${batch} ${a} ${o} sequence_batching { ${start} state { input_name: 'S' output_name: 'T' data_type: TYPE_INT32 dims: 7 } }`,
      sequence,
      "unable to load model 'm', configuration expects datatype TYPE_INT32 for input state 'S', model provides TYPE_FP32",
    ],
    [
      `${batch} ${a} ${o} sequence_batching { ${start} state { input_name: 'S' output_name: 'T' data_type: TYPE_FP32 dims: [ 7, 7 ] } }`,
      sequence,
      "model 'm', tensor 'S': the model expects 2 dimensions (shape [-1,-1]) but the model configuration specifies 3 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,7,7])",
    ],
  ])("refuses %j on graph %#", (text, graph, error) => {
    expect(() => validateAgainstGraph(configOf(text), graph)).toThrow(
      expect.objectContaining({ name: "LoadError", message: error }),
    );
  });
});
