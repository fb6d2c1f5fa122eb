/**
 * Triton's whole tree of ModelConfig messages, as of mid-2026. A field that is not here is unknown,
 * and an unknown field is an error.
 */
import {
  dataTypes,
  type Accelerator,
  type BatchInput,
  type BatchOutput,
  type ControlInput,
  type DataType,
  type DynamicBatching,
  type EnsembleScheduling,
  type EnsembleStep,
  type GraphLowerBound,
  type GraphShape,
  type GraphSpec,
  type InitialState,
  type InstanceGroup,
  type MetricControl,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  type ModelWarmup,
  type OptimizationPolicy,
  type QueuePolicy,
  type RateLimiterResource,
  type SequenceBatching,
  type SequenceControl,
  type SequenceState,
  type TensorReshape,
  type VersionPolicy,
  type WarmupInput,
} from "#shared/model/config.js";
import { enumOf, mapOf, message, oneof, repeated, type Message } from "./message.js";

/** The type of a message field without a name of its own in the configuration's types. */
type Of<T, K extends keyof T> = Exclude<T[K], undefined>;
type Item<T> = T extends readonly (infer E)[] ? E : never;

const dataType = enumOf<DataType>(...dataTypes);

const instanceGroup = message<InstanceGroup>("ModelInstanceGroup", {
  name: "string",
  kind: enumOf("KIND_AUTO", "KIND_GPU", "KIND_CPU", "KIND_MODEL"),
  count: "int32",
  rate_limiter: message<Of<InstanceGroup, "rate_limiter">>("ModelRateLimiter", {
    resources: repeated(
      message<RateLimiterResource>("ModelRateLimiter.Resource", { name: "string", global: "bool", count: "uint32" }),
    ),
    priority: "uint32",
  }),
  gpus: repeated("int32"),
  secondary_devices: repeated(
    message<Item<InstanceGroup["secondary_devices"]>>("ModelInstanceGroup.SecondaryDevice", {
      kind: enumOf("KIND_NVDLA"),
      device_id: "int64",
    }),
  ),
  profile: repeated("string"),
  passive: "bool",
  host_policy: "string",
});

const reshape = message<TensorReshape>("ModelTensorReshape", { shape: repeated("int64") });

const input = message<ModelInput>("ModelInput", {
  name: "string",
  data_type: dataType,
  format: enumOf("FORMAT_NONE", "FORMAT_NHWC", "FORMAT_NCHW"),
  dims: repeated("int64"),
  reshape,
  is_shape_tensor: "bool",
  allow_ragged_batch: "bool",
  optional: "bool",
  is_non_linear_format_io: "bool",
});

const output = message<ModelOutput>("ModelOutput", {
  name: "string",
  data_type: dataType,
  dims: repeated("int64"),
  reshape,
  label_filename: "string",
  is_shape_tensor: "bool",
  is_non_linear_format_io: "bool",
});

const batchInput = message<BatchInput>("BatchInput", {
  kind: enumOf(
    "BATCH_ELEMENT_COUNT",
    "BATCH_ACCUMULATED_ELEMENT_COUNT",
    "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
    "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE",
    "BATCH_ITEM_SHAPE",
    "BATCH_ITEM_SHAPE_FLATTEN",
  ),
  target_name: repeated("string"),
  data_type: dataType,
  source_input: repeated("string"),
});

const batchOutput = message<BatchOutput>("BatchOutput", {
  target_name: repeated("string"),
  kind: enumOf("BATCH_SCATTER_WITH_INPUT_SHAPE"),
  source_input: repeated("string"),
});

const versionPolicy = message<VersionPolicy>("ModelVersionPolicy", {
  latest: oneof(
    "policy_choice",
    message<Of<VersionPolicy, "latest">>("ModelVersionPolicy.Latest", { num_versions: "uint32" }),
  ),
  all: oneof("policy_choice", message<Of<VersionPolicy, "all">>("ModelVersionPolicy.All", {})),
  specific: oneof(
    "policy_choice",
    message<Of<VersionPolicy, "specific">>("ModelVersionPolicy.Specific", { versions: repeated("int64") }),
  ),
});

const graphShape = message<GraphShape>("ModelOptimizationPolicy.Cuda.GraphSpec.Shape", { dim: repeated("int64") });
const lowerBound = message<GraphLowerBound>("ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound", {
  batch_size: "int32",
  input: mapOf("string", graphShape),
});
const graphSpec = message<GraphSpec>("ModelOptimizationPolicy.Cuda.GraphSpec", {
  batch_size: "int32",
  input: mapOf("string", graphShape),
  graph_lower_bound: lowerBound,
});
const accelerator = message<Accelerator>("ModelOptimizationPolicy.ExecutionAccelerators.Accelerator", {
  name: "string",
  parameters: mapOf("string", "string"),
});
const pinnedMemory = message<Of<OptimizationPolicy, "input_pinned_memory">>(
  "ModelOptimizationPolicy.PinnedMemoryBuffer",
  { enable: "bool" },
);

const optimization = message<OptimizationPolicy>("ModelOptimizationPolicy", {
  graph: message<Of<OptimizationPolicy, "graph">>("ModelOptimizationPolicy.Graph", { level: "int32" }),
  priority: enumOf("PRIORITY_DEFAULT", "PRIORITY_MAX", "PRIORITY_MIN"),
  cuda: message<Of<OptimizationPolicy, "cuda">>("ModelOptimizationPolicy.Cuda", {
    graphs: "bool",
    busy_wait_events: "bool",
    graph_spec: repeated(graphSpec),
    output_copy_stream: "bool",
  }),
  execution_accelerators: message<Of<OptimizationPolicy, "execution_accelerators">>(
    "ModelOptimizationPolicy.ExecutionAccelerators",
    { gpu_execution_accelerator: repeated(accelerator), cpu_execution_accelerator: repeated(accelerator) },
  ),
  input_pinned_memory: pinnedMemory,
  output_pinned_memory: pinnedMemory,
  gather_kernel_buffer_threshold: "uint32",
  eager_batching: "bool",
});

const queuePolicy = message<QueuePolicy>("ModelQueuePolicy", {
  timeout_action: enumOf("REJECT", "DELAY"),
  default_timeout_microseconds: "uint64",
  allow_timeout_override: "bool",
  max_queue_size: "uint32",
});

const dynamicBatching = message<DynamicBatching>("ModelDynamicBatching", {
  preferred_batch_size: repeated("int32"),
  max_queue_delay_microseconds: "uint64",
  preserve_ordering: "bool",
  priority_levels: "uint64",
  default_priority_level: "uint64",
  default_queue_policy: queuePolicy,
  priority_queue_policy: mapOf("uint64", queuePolicy),
});

const control = message<SequenceControl>("ModelSequenceBatching.Control", {
  kind: enumOf("CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_READY", "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_CORRID"),
  int32_false_true: repeated("int32"),
  fp32_false_true: repeated("float"),
  bool_false_true: repeated("bool"),
  data_type: dataType,
});

const initialState = message<InitialState>("ModelSequenceBatching.InitialState", {
  data_type: dataType,
  dims: repeated("int64"),
  zero_data: oneof("state_data", "bool"),
  data_file: oneof("state_data", "string"),
  name: "string",
});

const state = message<SequenceState>("ModelSequenceBatching.State", {
  input_name: "string",
  output_name: "string",
  data_type: dataType,
  dims: repeated("int64"),
  initial_state: repeated(initialState),
  use_same_buffer_for_input_output: "bool",
  use_growable_memory: "bool",
});

const sequenceBatching = message<SequenceBatching>("ModelSequenceBatching", {
  direct: oneof(
    "strategy_choice",
    message<Of<SequenceBatching, "direct">>("ModelSequenceBatching.StrategyDirect", {
      max_queue_delay_microseconds: "uint64",
      minimum_slot_utilization: "float",
    }),
  ),
  oldest: oneof(
    "strategy_choice",
    message<Of<SequenceBatching, "oldest">>("ModelSequenceBatching.StrategyOldest", {
      max_candidate_sequences: "int32",
      preferred_batch_size: repeated("int32"),
      max_queue_delay_microseconds: "uint64",
      preserve_ordering: "bool",
    }),
  ),
  max_sequence_idle_microseconds: "uint64",
  control_input: repeated(
    message<ControlInput>("ModelSequenceBatching.ControlInput", { name: "string", control: repeated(control) }),
  ),
  state: repeated(state),
  iterative_sequence: "bool",
});

const ensembling = message<EnsembleScheduling>("ModelEnsembling", {
  step: repeated(
    message<EnsembleStep>("ModelEnsembling.Step", {
      model_name: "string",
      model_version: "int64",
      input_map: mapOf("string", "string"),
      output_map: mapOf("string", "string"),
      model_namespace: "string",
    }),
  ),
  max_inflight_requests: "uint32",
});

const warmup = message<ModelWarmup>("ModelWarmup", {
  name: "string",
  batch_size: "uint32",
  inputs: mapOf(
    "string",
    message<WarmupInput>("ModelWarmup.Input", {
      data_type: dataType,
      dims: repeated("int64"),
      zero_data: oneof("input_data_type", "bool"),
      random_data: oneof("input_data_type", "bool"),
      input_data_file: oneof("input_data_type", "string"),
    }),
  ),
  count: "uint32",
});

const metricControl = message<MetricControl>("ModelMetrics.MetricControl", {
  metric_identifier: message<Of<MetricControl, "metric_identifier">>("ModelMetrics.MetricControl.MetricIdentifier", {
    family: "string",
  }),
  histogram_options: oneof(
    "metric_options",
    message<Of<MetricControl, "histogram_options">>("ModelMetrics.MetricControl.HistogramOptions", {
      buckets: repeated("double"),
    }),
  ),
});

export const modelConfig: Message<ModelConfig> = message<ModelConfig>("ModelConfig", {
  name: "string",
  platform: "string",
  backend: "string",
  runtime: "string",
  version_policy: versionPolicy,
  max_batch_size: "int32",
  input: repeated(input),
  output: repeated(output),
  batch_input: repeated(batchInput),
  batch_output: repeated(batchOutput),
  optimization,
  dynamic_batching: oneof("scheduling_choice", dynamicBatching),
  sequence_batching: oneof("scheduling_choice", sequenceBatching),
  ensemble_scheduling: oneof("scheduling_choice", ensembling),
  instance_group: repeated(instanceGroup),
  default_model_filename: "string",
  cc_model_filenames: mapOf("string", "string"),
  metric_tags: mapOf("string", "string"),
  parameters: mapOf("string", message<ModelConfig["parameters"][string]>("ModelParameter", { string_value: "string" })),
  model_warmup: repeated(warmup),
  model_operations: message<Of<ModelConfig, "model_operations">>("ModelOperations", {
    op_library_filename: repeated("string"),
  }),
  model_transaction_policy: message<Of<ModelConfig, "model_transaction_policy">>("ModelTransactionPolicy", {
    decoupled: "bool",
  }),
  model_repository_agents: message<Of<ModelConfig, "model_repository_agents">>("ModelRepositoryAgents", {
    agents: repeated(
      message<Accelerator>("ModelRepositoryAgents.Agent", { name: "string", parameters: mapOf("string", "string") }),
    ),
  }),
  response_cache: message<Of<ModelConfig, "response_cache">>("ModelResponseCache", { enable: "bool" }),
  model_metrics: message<Of<ModelConfig, "model_metrics">>("ModelMetrics", { metric_control: repeated(metricControl) }),
});
