import { describe, expect, it } from "vitest";
import type { ModelConfig } from "#shared/model/config.js";
import { completeDefaults } from "./complete.js";
import { modelConfig } from "../pbtxt/schema.js";
import { parseTextFormat } from "../pbtxt/text-format.js";
import { validateTensors } from "./tensors.js";
import { validateConfig } from "./validate.js";

function configOf(text: string, gpus: readonly number[] = []): ModelConfig {
  const config = parseTextFormat(modelConfig, Buffer.from(text), "config.pbtxt");
  return completeDefaults(config, { directory: "m", firstVersionFiles: ["model.onnx"], gpus });
}

const controls = (text: string): string => `sequence_batching { control_input { name: 'X' control { ${text} } } }`;
const state = (text: string): string =>
  `sequence_batching { state { input_name: 'S' output_name: 'T' data_type: TYPE_FP32 dims: [ 2, -1 ] ${text} } }`;
const initial = (text: string): string => state(`initial_state { ${text} }`);
const complete = "data_type: TYPE_FP32 dims: [ 2, 3 ] name: 'i'";

describe("validateConfig", () => {
  it.each([
    "",
    "max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 4, 8 ] }",
    "dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 2 } }",
    "dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: DELAY } }",
    "sequence_batching { direct { minimum_slot_utilization: 0 } }",
    controls("kind: CONTROL_SEQUENCE_START fp32_false_true: [ 5, 9 ]"),
    controls("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING"),
    initial(`${complete} zero_data: false`),
    initial(`${complete} data_file: 'a/b.bin'`),
    "model_transaction_policy { decoupled: true }",
    "parameters { key: 'anything' value { string_value: 'x' } }",
  ])("accepts %j", (text) => {
    expect(() => validateConfig(configOf(text), [])).not.toThrow();
  });

  it.each<[text: string, error: string]>([
    ["platform: 'ensemble'", "ensemble scheduling must be set for ensemble 'm' whose platform is ensemble"],
    ["ensemble_scheduling { }", "ensemble scheduling cannot be set for model 'm' whose platform is not ensemble"],
    ["backend: 'python'", "backend 'python' is not supported: model 'm' needs backend 'onnxruntime'"],
    [
      "platform: 'tensorrt_plan'",
      "unexpected platform type 'tensorrt_plan' for m: " +
        'write platform: "onnxruntime_onnx", beside a model.onnx in the folder of each version',
    ],
    [
      "parameters { key: 'implicit_start' value { string_value: 'true' } }",
      "parameter 'implicit_start' needs sequence batching, which m does not have",
    ],
    [
      "backend: 'onnxruntime' platform: 'tensorrt_plan'",
      "unexpected 'platform' and 'backend' pair, got:tensorrt_plan, onnxruntime",
    ],
    ["default_model_filename: 'x'", "must specify 'platform' or 'backend' for 'm'"],
    ["max_batch_size: -1", "'max_batch_size' must be non-negative value for m"],
    ["dynamic_batching { preferred_batch_size: 0 }", "dynamic batching preferred size must be positive for m"],
    [
      "max_batch_size: 4 dynamic_batching { preferred_batch_size: 8 }",
      "dynamic batching preferred size must be <= max batch size for m",
    ],
    ["dynamic_batching { priority_levels: 2 }", "default priority level must be in range [1, 2] for m"],
    [
      "dynamic_batching { priority_levels: 2 default_priority_level: 3 }",
      "default priority level must be in range [1, 2] for m",
    ],
    [
      "dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 } }",
      "priority queue policy must have priority level in range [1, 2] for m",
    ],
    [
      "dynamic_batching { priority_levels: 2 default_priority_level: 1 preserve_ordering: true }",
      "Only one priority level is allowed when 'preserve_ordering' is true for m",
    ],
    [
      "dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 1 } }",
      "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m",
    ],
    [
      "dynamic_batching { preserve_ordering: true priority_queue_policy { key: 1 value { timeout_action: DELAY default_timeout_microseconds: 1 } } }",
      "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m",
    ],
    [
      "response_cache { enable: true } sequence_batching { }",
      "Response Cache does not currently support model m with sequence batching scheduler. Please disable the response cache.",
    ],
    [
      "response_cache { enable: true } model_transaction_policy { decoupled: true }",
      "Response Cache does not currently support model m with 'decoupled' transaction policy. Please disable the response cache.",
    ],
    ["sequence_batching { control_input { } }", "sequence batching control tensor must have a name for m"],
    [
      "sequence_batching { control_input { name: 'X' } control_input { name: 'X' } }",
      "sequence batching control tensor 'X' is specified for multiple control kinds for m",
    ],
    [
      "sequence_batching { control_input [ { name: 'X' control { int32_false_true: [0, 1] } }, { name: 'Y' control { int32_false_true: [0, 1] } } ] }",
      "sequence batching specifies multiple CONTROL_SEQUENCE_START tensors for m",
    ],
    [
      controls("kind: CONTROL_SEQUENCE_END"),
      "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_END for m",
    ],
    [
      controls("kind: CONTROL_SEQUENCE_READY int32_false_true: [0, 1] bool_false_true: [f, t]"),
      "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' for CONTROL_SEQUENCE_READY for m",
    ],
    [
      controls("fp32_false_true: [0, 1, 2]"),
      "sequence batching control 'fp32_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_START for m",
    ],
    [
      controls("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 int32_false_true: [0, 1]"),
      "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for CONTROL_SEQUENCE_CORRID for m",
    ],
    [
      controls("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32"),
      "unexpected data type for control CONTROL_SEQUENCE_CORRID for m. Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING",
    ],
    [
      "sequence_batching { oldest { preferred_batch_size: -1 } }",
      "sequence batching preferred batch size must be positive for m",
    ],
    [
      "sequence_batching { oldest { preferred_batch_size: 1 } }",
      "sequence batching preferred batch size must be <= max batch size for m",
    ],
    ...["1.5", "-0.1", "nan"].map((value): [string, string] => [
      `sequence_batching { direct { minimum_slot_utilization: ${value} } }`,
      "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m",
    ]),
    [
      "sequence_batching { state { input_name: 'S' } }",
      "sequence batching state must specify 'input_name' and 'output_name' for m",
    ],
    ["sequence_batching { state { input_name: 'S' output_name: 'T' } }", "state 'S' must specify 'data_type' for m"],
    [
      "sequence_batching { state { input_name: 'S' output_name: 'T' data_type: TYPE_BOOL } }",
      "state 'S' must specify 'dims' for m",
    ],
    [state("dims: 0"), "state 'S' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m"],
    [state("dims: 9007199254740991"), "state 'S' has more elements than can be counted for m"],
    [
      state("initial_state { } initial_state { }"),
      "initial_state field for state input 'S' must contain exactly one or zero element. Found '2' elements.",
    ],
    [
      initial("data_type: TYPE_FP16"),
      "The data type used for 'initial_state' field of state 'S' does not match the state data type.",
    ],
    [initial("data_type: TYPE_FP32"), "Field 'name' must be set when using initial_state for state input 'S'."],
    [
      initial("data_type: TYPE_FP32 name: 'i' dims: 2"),
      "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input 'S'. 1 != 2",
    ],
    [
      initial("data_type: TYPE_FP32 name: 'i' dims: [2, -1]"),
      "'initial_state' field for state input name 'S' contains variable dimensions.",
    ],
    [
      initial("data_type: TYPE_FP32 name: 'i' dims: [3, 1]"),
      "'initial_state' dim for input name 'S' doesn't match 'state' dim description. 3 != 2",
    ],
    [initial(complete), "initial_state setting expects state 'S' to have state_data set"],
    [
      "sequence_batching { state [ { input_name: 'S' output_name: 'T' data_type: TYPE_BOOL dims: 1 }, { input_name: 'S' output_name: 'U' data_type: TYPE_BOOL dims: 1 } ] }",
      "State input name 'S' specified more than once.",
    ],
    ["model_metrics { metric_control { } }", "metric control must specify 'metric_identifier'"],
    ["model_metrics { metric_control { metric_identifier { } } }", "metric identifier must specify non-empty 'family'"],
    [
      "model_metrics { metric_control { metric_identifier { family: 'f' } } }",
      "metric control must specify 'histogram_options'",
    ],
    [
      "model_metrics { metric_control { metric_identifier { family: 'f' } histogram_options { } } }",
      "histogram options must specify non-empty 'buckets'",
    ],
    [
      "model_metrics { metric_control { metric_identifier { family: 'f' } histogram_options { buckets: [ 2, 1 ] } } }",
      "histogram options of 'f' must specify 'buckets' that ascend",
    ],
    [
      "metric_tags { key: 'a-b' value: 'c' }",
      "metric_tags of m: 'a-b' must be 1 to 100 letters, digits or '_', to name a label",
    ],
    ["instance_group { kind: KIND_GPU }", "instance group m_0 of model m has kind KIND_GPU but no GPUs are available"],
    [
      "instance_group { kind: KIND_CPU gpus: 0 }",
      "instance group m_0 of model m has kind KIND_CPU but specifies one or more GPUs",
    ],
    [
      "instance_group { kind: KIND_MODEL gpus: 0 }",
      "instance group m_0 of model m has kind KIND_MODEL but specifies one or more GPUs",
    ],
    [
      "instance_group { profile: '0' }",
      "instance group m_0 of model m and platform onnxruntime_onnx specifies profile field which is only supported for TensorRT models",
    ],
    [
      "backend: 'onnxruntime' default_model_filename: '../x'",
      "default_model_filename: '../x' must stay inside the model directory",
    ],
    [
      "output { name: 'O' label_filename: '/etc/passwd' }",
      "label_filename of 'O': '/etc/passwd' must stay inside the model directory",
    ],
    [
      initial(`${complete} data_file: 'a/../../b'`),
      "data_file of state 'S': 'a/../../b' must stay inside the model directory",
    ],
    [
      String.raw`model_warmup { name: 'w' inputs { key: 'A' value { input_data_file: 'a\0b' } } }`,
      String.raw`input_data_file of warmup 'w': 'a\0b' must stay inside the model directory`,
    ],
    [
      String.raw`cc_model_filenames { key: '8.0' value: 'a\\..\\b' }`,
      String.raw`cc_model_filenames: 'a\..\b' must stay inside the model directory`,
    ],
  ])("refuses %j", (text, error) => {
    expect(() => validateConfig(configOf(text), [])).toThrow(
      expect.objectContaining({ name: "LoadError", message: error }),
    );
  });

  it("refuses a GPU that is not there", () => {
    const config = configOf("instance_group { kind: KIND_GPU gpus: 7 }", [0, 1]);
    expect(() => validateConfig(config, [0, 1])).toThrow(
      "instance group m_0 of model m specifies invalid or unsupported gpu id 7. Available GPUs are: 0, 1",
    );
  });
});

describe("validateTensors", () => {
  const input = (text: string): string => `input { name: 'A' data_type: TYPE_FP32 ${text} }`;
  const output = "output { name: 'O' data_type: TYPE_FP32 dims: 1 }";

  it.each([
    input("dims: [ 3, -1 ]"),
    input("dims: [ 2, 4, -1, 6 ] reshape { shape: [ 8, -1, 1, 6 ] }"),
    `max_batch_size: 1 ${input("dims: 1 reshape { }")}`,
    input("dims: [ 3, 2, 1 ] format: FORMAT_NCHW"),
    `${input("dims: 1")} batch_input { kind: BATCH_ITEM_SHAPE target_name: 'B' data_type: TYPE_FP32 source_input: 'A' }`,
    `${input("dims: 1")} ${output} batch_output { target_name: 'O' source_input: 'A' }`,
  ])("accepts %j", (text) => {
    expect(() => validateTensors(configOf(text))).not.toThrow();
  });

  it.each<[text: string, error: string]>([
    ["input { }", "model input must specify 'name'"],
    ["output { }", "model output must specify 'name'"],
    ["input { name: 'A' }", "model input 'A' must specify 'data_type'"],
    ["output { name: 'O' data_type: TYPE_FP32 }", "model output 'O' must specify 'dims'"],
    ...["0", "-2"].map((dim): [string, string] => [
      input(`dims: ${dim}`),
      "model input 'A' dimension must be integer >= 1, or -1 to indicate a variable-size dimension",
    ]),
    [input("dims: [ 9007199254740991, 2 ]"), "model input 'A' has more elements than can be counted"],
    [
      input("dims: 1 reshape { }"),
      "model input 'A' cannot have empty reshape for non-batching model as scalar tensors are not supported",
    ],
    [
      input("dims: 1 reshape { shape: 0 }"),
      "model input 'A' reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension",
    ],
    [
      `max_batch_size: 1 ${input("dims: [ 1, 1 ] reshape { }")}`,
      "model input 'A' can have an empty reshape only from dims [1]",
    ],
    [input("dims: 4 reshape { shape: [ 2, 3 ] }"), "model input 'A' has different size for dims and reshape"],
    [`max_batch_size: 1 ${input("dims: 2 reshape { }")}`, "model input 'A' has different size for dims and reshape"],
    [input("dims: -1 reshape { shape: 1 }"), "model input 'A' has different size for dims and reshape"],
    [input("dims: [ 2, -1 ] reshape { shape: [ 3, -1 ] }"), "model input 'A' has different size for dims and reshape"],
    [
      input("dims: [ -1, -1 ] reshape { shape: -1 }"),
      "model input 'A' has different number of variable-size dimensions for dims and reshape",
    ],
    [input("dims: [ 1, 2 ] format: FORMAT_NHWC"), "model input NHWC/NCHW require 3 dims"],
    [input("dims: 1 is_shape_tensor: true"), "shape tensors are only supported for TensorRT platform"],
    [
      input("dims: 1 is_non_linear_format_io: true"),
      "Non-linear IO format is only supported for the TensorRT platform",
    ],
    [`${input("dims: 1")} ${input("dims: 1")}`, "input 'A' is specified more than once for m"],
    [`${output} ${output}`, "output 'O' is specified more than once for m"],
    [
      `${input("dims: 1")} sequence_batching { control_input { name: 'A' } }`,
      "input 'A' is specified more than once for m",
    ],
    [
      "sequence_batching { state [ { input_name: 'S' output_name: 'T' }, { input_name: 'R' output_name: 'T' } ] }",
      "state output 'T' is specified more than once for m",
    ],
    ["batch_input { }", "batch input kind 'BATCH_ELEMENT_COUNT' expects 1 source input, got 0"],
    ["batch_input { source_input: 'A' }", "batch input data type must be TYPE_INT32 or TYPE_FP32"],
    ["batch_input { source_input: 'A' data_type: TYPE_INT32 }", "unknown source input name 'A'"],
    [
      `max_batch_size: 1 ${input("dims: 4 reshape { shape: [ 2, 2 ] } allow_ragged_batch: true")}`,
      "model input 'A' cannot have both reshape and allow_ragged_batch",
    ],
    [
      `${input("dims: 4 reshape { shape: [ 2, 2 ] }")} ${output} batch_output { target_name: 'O' source_input: 'A' }`,
      "model input 'A' cannot have both reshape and a batch_input or batch_output that reads its shape",
    ],
    [
      `${input("dims: 4")} output { name: 'O' data_type: TYPE_FP32 dims: 4 reshape { shape: [ 2, 2 ] } } batch_output { target_name: 'O' source_input: 'A' }`,
      "model output 'O' cannot have both reshape and a batch_output",
    ],
    ["batch_output { }", "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 0"],
    ["batch_output { source_input: 'A' }", "unknown source input name 'A'"],
    [`${input("dims: 1")} batch_output { source_input: 'A' target_name: 'O' }`, "unknown target output name 'O'"],
    [
      `${input("dims: 1")} ${output} batch_output { source_input: 'A' target_name: ['O', 'O'] }`,
      "target output name 'O' can only be specified once",
    ],
  ])("refuses %j", (text, error) => {
    expect(() => validateTensors(configOf(text))).toThrow(
      expect.objectContaining({ name: "LoadError", message: error }),
    );
  });
});
