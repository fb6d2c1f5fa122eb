/**
 * Each row of the table of verdicts has a model here, which `scanRepository` reads, and which gets
 * the verdict of its row. A row without a model is a failure.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { ModelConfig } from "#shared/model/config.js";
import type { Message } from "../pbtxt/message.js";
import { modelConfig } from "../pbtxt/schema.js";
import { scanRepository } from "../scan.js";
import { validateTensors } from "./tensors.js";
import { generatorVerdicts, parameterVerdicts, Verdict, verdicts, type Verdicts } from "./verdicts.js";

const x = "name: 'X' data_type: TYPE_FP32 dims: 4";
const y = "name: 'Y' data_type: TYPE_FP32 dims: 4";
const input = (more: string) => `max_batch_size: 4 input { ${x} ${more} } output { ${y} }`;
const output = (more: string) => `max_batch_size: 4 input { ${x} } output { ${y} ${more} }`;
const optimization = (more: string) => `optimization { ${more} }`;
const dynamic = (more: string) => `max_batch_size: 4 dynamic_batching { ${more} }`;
const policy = (more: string) => dynamic(`default_queue_policy { ${more} }`);
const levelled = (more: string) =>
  dynamic(`priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 2 value { ${more} } }`);
const sequence = (more: string) => `max_batch_size: 4 sequence_batching { ${more} }`;
const oldest = (more: string) => sequence(`oldest { ${more} }`);
const starts = (more: string) =>
  sequence(`control_input { name: 'START' control { kind: CONTROL_SEQUENCE_START ${more} } }`);
const state = (more: string) => sequence(`state { input_name: 'S' output_name: 'T' data_type: TYPE_FP32 ${more} }`);
const initial = (more: string) => state(`dims: 1 initial_state { name: 'first' data_type: TYPE_FP32 dims: 1 ${more} }`);
const group = (more: string) => `instance_group { ${more} }`;
const parameter = (key: string, value: string) => `parameters { key: '${key}' value { string_value: '${value}' } }`;
const ensemble = (step: string, more = "") => `platform: 'ensemble' max_batch_size: 4 input { ${x} } output { ${y} }
  ensemble_scheduling { ${more} step { model_name: 's' model_version: -1 input_map { key: 'A' value: 'X' }
  output_map { key: 'B' value: 'Y' } ${step} } }`;
const iterates = `${sequence("iterative_sequence: true")} ${parameter("iterate_while", "MORE")}`;

/** A model that is refused because it sets its field, though fields of its kind may be obeyed. */
interface Refused {
  readonly text: string;
  readonly reason: RegExp;
}
const tensorRtOnly = (text: string): Refused => ({ text, reason: /TensorRT/ });

/** The file that a row names lies beside the configuration. */
const files = { "1/model.onnx": "", "1/other.onnx": "", "labels.txt": "a\n", "initial_state/f": "1234" };

/** By row: a model that sets the field. */
const fields: Readonly<Record<string, string | Refused>> = {
  name: "name: 'm'",
  platform: "platform: 'onnxruntime_onnx'",
  backend: "backend: 'onnxruntime'",
  runtime: "runtime: 'own.so'",
  "version_policy.latest.num_versions": "version_policy { latest { num_versions: 2 } }",
  "version_policy.all": "version_policy { all { } }",
  "version_policy.specific.versions": "version_policy { specific { versions: 1 } }",
  max_batch_size: "max_batch_size: 4",
  "input.name": input(""),
  "input.data_type": input(""),
  "input.format": `input { name: 'X' data_type: TYPE_FP32 dims: [ 2, 2, 1 ] format: FORMAT_NHWC } output { ${y} }`,
  "input.dims": input(""),
  "input.reshape": input("reshape { shape: [ 2, 2 ] }"),
  "input.is_shape_tensor": tensorRtOnly(input("is_shape_tensor: true")),
  "input.allow_ragged_batch": input("allow_ragged_batch: true"),
  "input.optional": `input { ${x} optional: true } output { ${y} }`,
  "input.is_non_linear_format_io": tensorRtOnly(input("is_non_linear_format_io: true")),
  "output.name": output(""),
  "output.data_type": output(""),
  "output.dims": output(""),
  "output.reshape": output("reshape { shape: [ 2, 2 ] }"),
  "output.label_filename": output("label_filename: 'labels.txt'"),
  "output.is_shape_tensor": tensorRtOnly(output("is_shape_tensor: true")),
  "output.is_non_linear_format_io": tensorRtOnly(output("is_non_linear_format_io: true")),
  "ensemble_scheduling.step.model_name": ensemble(""),
  "ensemble_scheduling.step.model_version": ensemble(""),
  "ensemble_scheduling.step.input_map": ensemble(""),
  "ensemble_scheduling.step.output_map": ensemble(""),
  "ensemble_scheduling.step.model_namespace": ensemble("model_namespace: 'n'"),
  "ensemble_scheduling.max_inflight_requests": ensemble("", "max_inflight_requests: 2"),
  batch_input:
    input("allow_ragged_batch: true") +
    " batch_input { kind: BATCH_ELEMENT_COUNT target_name: 'N' data_type: TYPE_INT32 source_input: 'X' }",
  batch_output:
    input("allow_ragged_batch: true") +
    " batch_output { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: 'Y' source_input: 'X' }",
  "optimization.graph.level": optimization("graph { level: 1 }"),
  "optimization.priority": optimization("priority: PRIORITY_MAX"),
  "optimization.cuda.graphs": optimization("cuda { graphs: true }"),
  "optimization.cuda.busy_wait_events": optimization("cuda { busy_wait_events: true }"),
  "optimization.cuda.graph_spec": optimization("cuda { graph_spec { batch_size: 4 } }"),
  "optimization.cuda.output_copy_stream": optimization("cuda { output_copy_stream: true }"),
  "optimization.execution_accelerators.gpu_execution_accelerator": optimization(
    "execution_accelerators { gpu_execution_accelerator { name: 'tensorrt' } }",
  ),
  "optimization.execution_accelerators.cpu_execution_accelerator": optimization(
    "execution_accelerators { cpu_execution_accelerator { name: 'openvino' } }",
  ),
  "optimization.input_pinned_memory.enable": optimization("input_pinned_memory { enable: true }"),
  "optimization.output_pinned_memory.enable": optimization("output_pinned_memory { enable: true }"),
  "optimization.gather_kernel_buffer_threshold": optimization("gather_kernel_buffer_threshold: 1"),
  "optimization.eager_batching": optimization("eager_batching: true"),
  "dynamic_batching.preferred_batch_size": dynamic("preferred_batch_size: 2"),
  "dynamic_batching.max_queue_delay_microseconds": dynamic("max_queue_delay_microseconds: 100"),
  "dynamic_batching.preserve_ordering": dynamic("preserve_ordering: true"),
  "dynamic_batching.priority_levels": dynamic("priority_levels: 2 default_priority_level: 1"),
  "dynamic_batching.default_priority_level": dynamic("priority_levels: 2 default_priority_level: 2"),
  "dynamic_batching.default_queue_policy.timeout_action": policy("timeout_action: DELAY"),
  "dynamic_batching.default_queue_policy.default_timeout_microseconds": policy("default_timeout_microseconds: 9"),
  "dynamic_batching.default_queue_policy.allow_timeout_override": policy("allow_timeout_override: true"),
  "dynamic_batching.default_queue_policy.max_queue_size": policy("max_queue_size: 9"),
  "dynamic_batching.priority_queue_policy.timeout_action": levelled("timeout_action: DELAY"),
  "dynamic_batching.priority_queue_policy.default_timeout_microseconds": levelled("default_timeout_microseconds: 9"),
  "dynamic_batching.priority_queue_policy.allow_timeout_override": levelled("allow_timeout_override: true"),
  "dynamic_batching.priority_queue_policy.max_queue_size": levelled("max_queue_size: 9"),
  "sequence_batching.direct.max_queue_delay_microseconds": sequence("direct { max_queue_delay_microseconds: 100 }"),
  "sequence_batching.direct.minimum_slot_utilization": sequence("direct { minimum_slot_utilization: 0.5 }"),
  "sequence_batching.oldest.max_candidate_sequences": oldest("max_candidate_sequences: 9"),
  "sequence_batching.oldest.preferred_batch_size": oldest("preferred_batch_size: 2"),
  "sequence_batching.oldest.max_queue_delay_microseconds": oldest("max_queue_delay_microseconds: 100"),
  "sequence_batching.oldest.preserve_ordering": oldest("preserve_ordering: true"),
  "sequence_batching.max_sequence_idle_microseconds": sequence("max_sequence_idle_microseconds: 9"),
  "sequence_batching.control_input.name": starts("int32_false_true: [ 0, 1 ]"),
  "sequence_batching.control_input.control.kind": sequence(
    "control_input { name: 'END' control { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } }",
  ),
  "sequence_batching.control_input.control.int32_false_true": starts("int32_false_true: [ 0, 1 ]"),
  "sequence_batching.control_input.control.fp32_false_true": starts("fp32_false_true: [ 0, 1 ]"),
  "sequence_batching.control_input.control.bool_false_true": starts("bool_false_true: [ false, true ]"),
  "sequence_batching.control_input.control.data_type": sequence(
    "control_input { name: 'ID' control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }",
  ),
  "sequence_batching.state.input_name": state("dims: 1"),
  "sequence_batching.state.output_name": state("dims: 1"),
  "sequence_batching.state.data_type": state("dims: 1"),
  "sequence_batching.state.dims": state("dims: 1"),
  "sequence_batching.state.initial_state.data_type": initial("zero_data: true"),
  "sequence_batching.state.initial_state.dims": initial("zero_data: true"),
  "sequence_batching.state.initial_state.zero_data": initial("zero_data: true"),
  "sequence_batching.state.initial_state.data_file": initial("data_file: 'f'"),
  "sequence_batching.state.initial_state.name": initial("zero_data: true"),
  "sequence_batching.state.use_same_buffer_for_input_output": state("dims: 1 use_same_buffer_for_input_output: true"),
  "sequence_batching.state.use_growable_memory": state("dims: 1 use_growable_memory: true"),
  "sequence_batching.iterative_sequence": iterates,
  "instance_group.name": group("name: 'first'"),
  "instance_group.kind": group("kind: KIND_CPU"),
  "instance_group.count": group("count: 2"),
  "instance_group.rate_limiter.resources": group("rate_limiter { resources { name: 'r' count: 1 } }"),
  "instance_group.rate_limiter.priority": group("rate_limiter { priority: 2 }"),
  "instance_group.gpus": group("kind: KIND_GPU gpus: 0"),
  "instance_group.secondary_devices": group("secondary_devices { kind: KIND_NVDLA device_id: 1 }"),
  "instance_group.profile": tensorRtOnly(group("profile: 'p'")),
  "instance_group.passive": group("passive: true"),
  "instance_group.host_policy": group("host_policy: 'one'"),
  default_model_filename: "backend: 'onnxruntime' default_model_filename: 'other.onnx'",
  cc_model_filenames: "cc_model_filenames { key: '9.0' value: 'other.onnx' }",
  metric_tags: "metric_tags { key: 'team' value: 'first' }",
  parameters: parameter("intra_op_thread_count", "1"),
  model_warmup: `${input("")} model_warmup { name: 'w' batch_size: 1 inputs { key: 'X' value { data_type: TYPE_FP32 dims: 4 zero_data: true } } }`,
  "model_operations.op_library_filename": "model_operations { op_library_filename: 'own.so' }",
  "model_transaction_policy.decoupled": "model_transaction_policy { decoupled: true }",
  "model_repository_agents.agents": "model_repository_agents { agents { name: 'checksum' } }",
  "response_cache.enable": "response_cache { enable: true }",
  "model_metrics.metric_control":
    "model_metrics { metric_control { metric_identifier { family: 'nv_inference_first_response_histogram_ms' } histogram_options { buckets: 1 } } }",
};

/** By row: a value that is taken, and for some keys the rest of a model that has a use for it. */
const parameters: Readonly<Record<string, readonly [value: string, more?: string]>> = {
  intra_op_thread_count: ["2"],
  inter_op_thread_count: ["2"],
  execution_mode: ["1"],
  enable_mem_arena: ["false"],
  enable_mem_pattern: ["false"],
  "memory.enable_memory_arena_shrinkage": ["cpu:0"],
  "session.use_device_allocator_for_initializers": ["1"],
  cudnn_conv_algo_search: ["1"],
  gpu_mem_limit: ["1000"],
  arena_extend_strategy: ["1"],
  do_copy_in_default_stream: ["1"],
  implicit_start: ["true", sequence("")],
  "batch_axis:": ["1", sequence("")],
  "constant_input:": ["16000"],
  iterate_while: ["MORE", sequence("iterative_sequence: true")],
  "feed:": ["X", iterates],
  respond_when: ["SAYS", `${iterates} model_transaction_policy { decoupled: true }`],
  checkpoint_every: ["3", iterates],
  max_iterations: ["9", iterates],
  checkpoint_history: ["3", sequence("")],
  execute_delay_ms: ["5"],
  takes_states_of: ["*", sequence("")],
};

const text = (more: string, role = "input") => `${role} { name: 'TEXT' data_type: TYPE_STRING dims: 1 ${more} }`;
const ask = (more: string) => `${text(more)} ${text("", "output")}`;
const answer = (more: string) => `${text("")} ${text(more, "output")}`;

/** By row: models whose meaning differs from that of a tensor model. */
const ofGenerators: Readonly<Record<string, string | Refused>> = {
  name: "name: 'm'",
  platform: "platform: 'tensorrt_llm'",
  backend: "backend: 'vllm'",
  version_policy: "version_policy { all { } }",
  "input.name": ask(""),
  "input.data_type": ask(""),
  "input.format": ask("format: FORMAT_NHWC"),
  "input.dims": ask(""),
  "input.reshape": ask("reshape { shape: [ 1, 1 ] }"),
  "input.is_shape_tensor": ask("is_shape_tensor: true"),
  "input.allow_ragged_batch": ask("allow_ragged_batch: true"),
  "input.optional": ask("optional: true"),
  "input.is_non_linear_format_io": ask("is_non_linear_format_io: true"),
  "output.name": answer(""),
  "output.data_type": answer(""),
  "output.dims": answer(""),
  "output.reshape": answer("reshape { shape: [ 1, 1 ] }"),
  "output.label_filename": answer("label_filename: 'labels.txt'"),
  "output.is_shape_tensor": answer("is_shape_tensor: true"),
  "output.is_non_linear_format_io": answer("is_non_linear_format_io: true"),
  batch_input: "batch_input { kind: BATCH_ELEMENT_COUNT target_name: 'N' source_input: 'X' }",
  batch_output: "batch_output { target_name: 'Y' source_input: 'X' }",
  optimization: optimization("eager_batching: true"),
  dynamic_batching: dynamic("max_queue_delay_microseconds: 100"),
  sequence_batching: sequence(""),
  ensemble_scheduling: "ensemble_scheduling { max_inflight_requests: 2 }",
  "instance_group.gpus": group("kind: KIND_GPU gpus: [ 0, 1 ]"),
  default_model_filename: "default_model_filename: 'other.onnx'",
  parameters: parameter("temperature", "1"),
  model_warmup: "model_warmup { name: 'w' batch_size: 1 }",
};

const generatorFiles = {
  "config.json": JSON.stringify({ n_positions: 64, vocab_size: 3, eos_token_id: 0 }),
  "tokenizer.json": JSON.stringify({ model: { type: "BPE", vocab: {}, merges: [] } }),
  "onnx/model.onnx": "x",
};

const root = mkdtempSync(join(tmpdir(), "baton-verdicts-"));
afterAll(() => rmSync(root, { recursive: true }));

interface Read {
  readonly warnings: readonly string[];
  readonly refusal: string | undefined;
  /** Of a tensor model. */
  readonly config: ModelConfig | undefined;
}

/** Reads a repository with this model alone, on a worker with two GPUs. */
async function read(config: string, given: Readonly<Record<string, string>> = files): Promise<Read> {
  const repository = mkdtempSync(join(root, "models-"));
  for (const [path, content] of Object.entries({ ...given, "config.pbtxt": config })) {
    const file = join(repository, "m", path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  const [model] = await scanRepository(repository, [0, 1]);
  if (model === undefined) throw new Error("there is a model");
  if (model.kind === "broken") return { warnings: [], refusal: model.error, config: undefined };
  if (model.kind === "generator") return { warnings: model.warnings, refusal: undefined, config: undefined };
  try {
    validateTensors(model.config);
  } catch (error) {
    return { warnings: [], refusal: String(error), config: undefined };
  }
  return { warnings: model.warnings, refusal: undefined, config: model.config };
}

/** All values of a row in a configuration: a list or a map has one for each of its members. */
function valuesAt(value: unknown, [name, ...rest]: readonly string[]): unknown[] {
  if (name === undefined || value === undefined) return value === undefined ? [] : [value];
  const found = (value as Readonly<Record<string, unknown>>)[name];
  if (rest.length === 0 || found === undefined) return valuesAt(found, rest);
  const isList = Array.isArray(found) || name === "priority_queue_policy";
  return (isList ? Object.values(found as object) : [found]).flatMap((one) => valuesAt(one, rest));
}

const isDefault = (value: unknown): boolean =>
  [undefined, 0, false, "", "TYPE_INVALID", "KIND_AUTO", "REJECT"].includes(value as string) ||
  (typeof value === "object" && value !== null && Object.keys(value).length === 0);

function rowsOf(table: Verdicts, path = ""): [row: string, verdict: Verdict][] {
  return Object.entries(table).flatMap(([name, one]) =>
    one instanceof Verdict ? [[path + name, one] as [string, Verdict]] : rowsOf(one, `${path}${name}.`),
  );
}

/** Every field of a configuration; a message with a verdict of its own is one field. */
function fieldsOf(message: Message, table: Verdicts, path = ""): string[] {
  return [...message.fields].flatMap(([name, { type }]) => {
    const verdict = table[name];
    const isMessage = typeof type === "object" && type.kind === "message" && type.fields.size > 0;
    if (!isMessage || verdict === undefined || verdict instanceof Verdict) return [path + name];
    return fieldsOf(type, verdict, `${path}${name}.`);
  });
}

/** Expects the verdict, by the field's own name without the places in lists. */
function expectVerdict(row: string, { decision }: Verdict, { warnings, refusal }: Read): void {
  const named = (sentences: readonly string[]) => sentences.map((one) => one.replaceAll(/\[\d+\](?=[. ])/g, ""));
  if (decision.kind === "refused") {
    expect(named([refusal ?? "it is loaded"])).toEqual([`${row} is not supported: ${decision.why}`]);
  } else {
    expect(refusal).toBeUndefined();
    expect(named(warnings)).toEqual(decision.kind === "warned" ? [`${row} has no effect: ${decision.why}`] : []);
  }
}

it("has a verdict for every field of the schema, and for nothing else", () => {
  const named = fieldsOf(modelConfig, verdicts);
  expect(named.length).toBeGreaterThan(90);
  expect(
    rowsOf(verdicts)
      .map(([row]) => row)
      .sort(),
  ).toEqual(named.sort());
});

describe("a field of a tensor model", () => {
  const rows = rowsOf(verdicts);

  it("has an example, and no other has", () => {
    expect(Object.keys(fields).sort()).toEqual(rows.map(([row]) => row).sort());
  });

  it.each(rows)("%s gets its verdict", async (row, verdict) => {
    const example = fields[row] ?? expect.fail("there is an example");
    if (typeof example !== "string") {
      expect((await read(example.text)).refusal).toMatch(example.reason);
      return;
    }
    const found = await read(example);
    expectVerdict(row, verdict, found);
    if (found.config === undefined) return;
    const values = valuesAt(found.config, row.split("."));
    // `version_policy.all` is a message without fields, which is there or not.
    expect(row === "version_policy.all" ? values : values.filter((value) => !isDefault(value))).not.toEqual([]);
  });
});

describe("a parameter of a tensor model", () => {
  it("has an example, and no other has", () => {
    expect(Object.keys(parameters).sort()).toEqual(Object.keys(parameterVerdicts).sort());
  });

  it.each(Object.entries(parameterVerdicts))("%s gets its verdict", async (row, verdict) => {
    const [value, more = ""] = parameters[row] ?? expect.fail("there is an example");
    const key = row.endsWith(":") ? `${row}T` : row;
    const found = await read(`${more} ${parameter(key, value)}`);
    const { decision } = verdict;
    const taken = new Verdict({ kind: "obeyed" });
    expectVerdict(`parameters['${key}']`, decision.kind === "refused" ? taken : verdict, found);
    expect(found.config?.parameters[key]).toEqual({ string_value: value });
    if (decision.kind !== "refused" || decision.allowed === undefined) return;
    expectVerdict(`parameters['${key}']`, verdict, await read(`${more} ${parameter(key, "neither")}`));
  });
});

describe("a field of a generator", () => {
  const rows = rowsOf(generatorVerdicts);

  it("has an example of its own, or that of a tensor model", () => {
    const known = new Set([...Object.keys(fields), ...Object.keys(ofGenerators)]);
    expect(rows.map(([row]) => row).filter((row) => !known.has(row))).toEqual([]);
    const all = rows.map(([row]) => row);
    expect(Object.keys(ofGenerators).filter((row) => !all.includes(row))).toEqual([]);
  });

  it.each(rows)("%s gets its verdict", async (row, verdict) => {
    const example = ofGenerators[row] ?? fields[row] ?? expect.fail("there is an example");
    if (typeof example !== "string") {
      expect((await read(example.text, generatorFiles)).refusal).toMatch(example.reason);
      return;
    }
    const found = await read(example, generatorFiles);
    // The example needs a batch dimension only as a tensor model.
    const own = found.warnings.filter((one) => row === "max_batch_size" || !one.startsWith("max_batch_size "));
    expectVerdict(row, verdict, { ...found, warnings: own });
  });
});
