import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { judge } from "./judge.js";
import { scanRepository } from "../scan.js";
import { modelConfig } from "../pbtxt/schema.js";
import { parseTextFormat } from "../pbtxt/text-format.js";

const judged = (text: string): string[] => judge(parseTextFormat(modelConfig, Buffer.from(text), "config.pbtxt"));

describe("judge", () => {
  it.each([
    "",
    "max_batch_size: 8 dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 100 }",
    "dynamic_batching { default_queue_policy { } }",
    "dynamic_batching { default_queue_policy { timeout_action: REJECT allow_timeout_override: true max_queue_size: 0 } }",
    "dynamic_batching { priority_levels: 0 preserve_ordering: false }",
    "dynamic_batching { default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 1 max_queue_size: 1 } }",
    "dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 1 } }",
    "sequence_batching { oldest { max_candidate_sequences: 4096 } }",
    "sequence_batching { direct { max_queue_delay_microseconds: 100 minimum_slot_utilization: 0.5 } }",
    "input { name: 'A' allow_ragged_batch: true } batch_input { kind: BATCH_ITEM_SHAPE } batch_output { }",
    "instance_group { count: 2 kind: KIND_CPU } instance_group { gpus: [ 0, 1 ] }",
    "instance_group { kind: KIND_MODEL passive: false }",
    "optimization { priority: PRIORITY_DEFAULT input_pinned_memory { enable: true } graph { level: 1 } cuda { } }",
    "optimization { execution_accelerators { } eager_batching: false gather_kernel_buffer_threshold: 0 }",
    "model_operations { } model_repository_agents { } response_cache { enable: true } model_metrics { }",
    "cc_model_filenames { key: '8.0' value: 'x' }",
    "model_transaction_policy { decoupled: false } metric_tags { key: 'a' value: 'b' }",
    "model_metrics { metric_control { metric_identifier { family: 'nv_inference_first_response_histogram_ms' } } }",
    "model_warmup { name: 'w' batch_size: 1 inputs { key: 'X' value { zero_data: true } } }",
    "input { name: 'A' dims: 4 reshape { shape: [ 2, 2 ] } } output { name: 'B' dims: 2 reshape { shape: [ 1, 2 ] } }",
    "input { name: 'A' dims: 1 reshape { } } output { name: 'B' dims: 1 reshape { shape: [ ] } }",
    "parameters { key: 'intra_op_thread_count' value { string_value: '2' } }",
    "parameters { key: 'inter_op_thread_count' value { string_value: '2' } }",
    "parameters { key: 'execution_mode' value { string_value: '1' } }",
    "parameters { key: 'enable_mem_arena' value { string_value: 'off' } }",
    "parameters { key: 'enable_mem_pattern' value { string_value: 'True' } }",
  ])("finds nothing in %j", (text) => {
    expect(judged(text)).toEqual([]);
  });

  it.each([
    ["instance_group[0].passive", "instance_group { passive: true }"],
    [
      "optimization.execution_accelerators.gpu_execution_accelerator",
      "optimization { execution_accelerators { gpu_execution_accelerator { name: 'tensorrt' } } }",
    ],
    [
      "optimization.execution_accelerators.cpu_execution_accelerator",
      "optimization { execution_accelerators { cpu_execution_accelerator { name: 'openvino' } } }",
    ],
    ["model_operations.op_library_filename", "model_operations { op_library_filename: 'x.so' }"],
    ["model_repository_agents.agents", "model_repository_agents { agents { name: 'checksum' } }"],
    [
      "parameters['intra_op_thread_count']",
      "parameters { key: 'intra_op_thread_count' value { string_value: 'all' } }",
    ],
    ["parameters['inter_op_thread_count']", "parameters { key: 'inter_op_thread_count' value { string_value: '-1' } }"],
    ["parameters['execution_mode']", "parameters { key: 'execution_mode' value { string_value: '2' } }"],
    ["parameters['enable_mem_arena']", "parameters { key: 'enable_mem_arena' value { string_value: 'yes' } }"],
    ["parameters['enable_mem_pattern']", "parameters { key: 'enable_mem_pattern' value { string_value: '2' } }"],
    ["parameters['checkpoint_history']", "parameters { key: 'checkpoint_history' value { string_value: '0' } }"],
    ["parameters['execute_delay_ms']", "parameters { key: 'execute_delay_ms' value { string_value: '0.5' } }"],
    ["parameters['execute_delay_ms']", "parameters { key: 'execute_delay_ms' value { string_value: '10000' } }"],
    ["parameters['takes_states_of']", "parameters { key: 'takes_states_of' value { string_value: 'all' } }"],
    ["parameters['implicit_start']", "parameters { key: 'implicit_start' value { string_value: 'yes' } }"],
    ["parameters['batch_axis:h']", "parameters { key: 'batch_axis:h' value { string_value: '-1' } }"],
  ])("refuses %s", (field, text) => {
    expect(() => judged(text)).toThrow(
      expect.objectContaining({
        name: "LoadError",
        message: expect.stringContaining(`${field} is not supported: `) as unknown,
      }),
    );
  });

  it("names all that it refuses", () => {
    const both = "model_operations { op_library_filename: 'x.so' } instance_group { passive: true }";
    expect(() => judged(both)).toThrow(/passive is not supported: .*; .*op_library_filename is not supported: /);
  });

  it.each([
    ["dynamic_batching.default_priority_level", "dynamic_batching { default_priority_level: 1 }"],
    ["dynamic_batching.priority_queue_policy", "dynamic_batching { priority_queue_policy { key: 1 } }"],
    [
      "sequence_batching.state[0].use_same_buffer_for_input_output",
      "sequence_batching { state { use_same_buffer_for_input_output: true } }",
    ],
    ["instance_group[0].rate_limiter.priority", "instance_group { rate_limiter { priority: 2 } }"],
    ["instance_group[0].host_policy", "instance_group { host_policy: 'x' }"],
    [
      "model_metrics.metric_control[0]",
      "model_metrics { metric_control { metric_identifier { family: 'nv_x' } histogram_options { buckets: 1 } } }",
    ],
    ["runtime", "runtime: 'x.so'"],
    ["optimization.priority", "optimization { priority: PRIORITY_MAX }"],
    ["optimization.eager_batching", "optimization { eager_batching: true }"],
    ["optimization.cuda.graphs", "optimization { cuda { graphs: true } }"],
    ["optimization.cuda.graph_spec", "optimization { cuda { graph_spec { } } }"],
    ["parameters['intra_op_threads']", "parameters { key: 'intra_op_threads' value { string_value: '1' } }"],
  ])("warns of %s", (field, text) => {
    expect(judged(text)).toEqual([expect.stringMatching(/^\S+ has no effect/)]);
    expect(judged(text)[0]?.startsWith(field)).toBe(true);
  });
});

describe("the repositories of this checkout", () => {
  const root = join(import.meta.dirname, "../../..");
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "baton-judge-"));
    // The copy includes the programs that made the models, because they lie in the same folder.
    cpSync(join(root, "test/fixtures/models"), folder, { recursive: true });
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each([
    ["infra/models", () => join(root, "infra/models")],
    ["test/fixtures/models", () => folder],
  ])("%s asks for nothing in vain", async (_, repository) => {
    // The tutorial's model is left out, because Baton reads its configuration as another one.
    const models = (await scanRepository(repository())).filter(({ name }) => name !== "my_lstm_model");
    expect(models.length).toBeGreaterThan(2);
    expect(models.filter(({ kind }) => kind === "broken")).toEqual([]);
    expect(models.flatMap((model) => (model.kind === "found" ? model.warnings : []))).toEqual([]);
  });
});
