/**
 * A model's configuration, with the field names of Triton's ModelConfig (model_config.proto), so
 * that the `/config` endpoint prints the object unchanged. Every field is present with its proto3
 * default; only omitted messages and members of a oneof are absent. int64 fields (dims, versions)
 * are numbers: the parser refuses values that a number cannot hold exactly.
 */
import type { Datatype } from "./datatype.js";

export const dataTypes = [
  "TYPE_INVALID",
  "TYPE_BOOL",
  "TYPE_UINT8",
  "TYPE_UINT16",
  "TYPE_UINT32",
  "TYPE_UINT64",
  "TYPE_INT8",
  "TYPE_INT16",
  "TYPE_INT32",
  "TYPE_INT64",
  "TYPE_FP16",
  "TYPE_FP32",
  "TYPE_FP64",
  "TYPE_STRING",
  "TYPE_BF16",
] as const;

export type DataType = (typeof dataTypes)[number];

/**
 * A bigint only above 2^53 - 1. Configurations write "never expire" as 18446744073709551615, which
 * a number would round.
 */
export type Uint64 = number | bigint;

type Strings = Readonly<Record<string, string>>;

export interface TensorReshape {
  readonly shape: readonly number[];
}

export interface ModelInput {
  readonly name: string;
  readonly data_type: DataType;
  readonly format: "FORMAT_NONE" | "FORMAT_NHWC" | "FORMAT_NCHW";
  readonly dims: readonly number[];
  readonly reshape?: TensorReshape;
  readonly is_shape_tensor: boolean;
  readonly allow_ragged_batch: boolean;
  readonly optional: boolean;
  readonly is_non_linear_format_io: boolean;
}

export interface ModelOutput {
  readonly name: string;
  readonly data_type: DataType;
  readonly dims: readonly number[];
  readonly reshape?: TensorReshape;
  readonly label_filename: string;
  readonly is_shape_tensor: boolean;
  readonly is_non_linear_format_io: boolean;
}

export interface BatchInput {
  readonly kind:
    | "BATCH_ELEMENT_COUNT"
    | "BATCH_ACCUMULATED_ELEMENT_COUNT"
    | "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO"
    | "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE"
    | "BATCH_ITEM_SHAPE"
    | "BATCH_ITEM_SHAPE_FLATTEN";
  readonly target_name: readonly string[];
  readonly data_type: DataType;
  readonly source_input: readonly string[];
}

export interface BatchOutput {
  readonly target_name: readonly string[];
  readonly kind: "BATCH_SCATTER_WITH_INPUT_SHAPE";
  readonly source_input: readonly string[];
}

/** At most one member is present; no member means all versions. */
export interface VersionPolicy {
  readonly latest?: { readonly num_versions: number };
  readonly all?: object;
  readonly specific?: { readonly versions: readonly number[] };
}

export interface GraphShape {
  readonly dim: readonly number[];
}

export interface GraphLowerBound {
  readonly batch_size: number;
  readonly input: Readonly<Record<string, GraphShape>>;
}

export interface GraphSpec extends GraphLowerBound {
  readonly graph_lower_bound?: GraphLowerBound;
}

export interface Accelerator {
  readonly name: string;
  readonly parameters: Strings;
}

export interface OptimizationPolicy {
  readonly graph?: { readonly level: number };
  readonly priority: "PRIORITY_DEFAULT" | "PRIORITY_MAX" | "PRIORITY_MIN";
  readonly cuda?: {
    readonly graphs: boolean;
    readonly busy_wait_events: boolean;
    readonly graph_spec: readonly GraphSpec[];
    readonly output_copy_stream: boolean;
  };
  readonly execution_accelerators?: {
    readonly gpu_execution_accelerator: readonly Accelerator[];
    readonly cpu_execution_accelerator: readonly Accelerator[];
  };
  readonly input_pinned_memory?: { readonly enable: boolean };
  readonly output_pinned_memory?: { readonly enable: boolean };
  readonly gather_kernel_buffer_threshold: number;
  readonly eager_batching: boolean;
}

export interface QueuePolicy {
  readonly timeout_action: "REJECT" | "DELAY";
  readonly default_timeout_microseconds: Uint64;
  readonly allow_timeout_override: boolean;
  readonly max_queue_size: number;
}

export interface DynamicBatching {
  readonly preferred_batch_size: readonly number[];
  readonly max_queue_delay_microseconds: Uint64;
  readonly preserve_ordering: boolean;
  readonly priority_levels: Uint64;
  readonly default_priority_level: Uint64;
  readonly default_queue_policy?: QueuePolicy;
  /** The keys are priority levels, in decimal digits. */
  readonly priority_queue_policy: Readonly<Record<string, QueuePolicy>>;
}

export interface SequenceControl {
  readonly kind:
    "CONTROL_SEQUENCE_START" | "CONTROL_SEQUENCE_READY" | "CONTROL_SEQUENCE_END" | "CONTROL_SEQUENCE_CORRID";
  readonly int32_false_true: readonly number[];
  readonly fp32_false_true: readonly number[];
  readonly bool_false_true: readonly boolean[];
  readonly data_type: DataType;
}

export interface ControlInput {
  readonly name: string;
  readonly control: readonly SequenceControl[];
}

export interface InitialState {
  readonly data_type: DataType;
  readonly dims: readonly number[];
  /** If present, with either value, the state is zeros. */
  readonly zero_data?: boolean;
  readonly data_file?: string;
  readonly name: string;
}

export interface SequenceState {
  readonly input_name: string;
  readonly output_name: string;
  readonly data_type: DataType;
  readonly dims: readonly number[];
  readonly initial_state: readonly InitialState[];
  readonly use_same_buffer_for_input_output: boolean;
  readonly use_growable_memory: boolean;
}

export interface SequenceBatching {
  readonly direct?: { readonly max_queue_delay_microseconds: Uint64; readonly minimum_slot_utilization: number };
  readonly oldest?: {
    readonly max_candidate_sequences: number;
    readonly preferred_batch_size: readonly number[];
    readonly max_queue_delay_microseconds: Uint64;
    readonly preserve_ordering: boolean;
  };
  readonly max_sequence_idle_microseconds: Uint64;
  readonly control_input: readonly ControlInput[];
  readonly state: readonly SequenceState[];
  readonly iterative_sequence: boolean;
}

export interface EnsembleStep {
  readonly model_name: string;
  readonly model_version: number;
  readonly input_map: Strings;
  readonly output_map: Strings;
  readonly model_namespace: string;
}

export interface EnsembleScheduling {
  readonly step: readonly EnsembleStep[];
  readonly max_inflight_requests: number;
}

export interface RateLimiterResource {
  readonly name: string;
  readonly global: boolean;
  readonly count: number;
}

export interface InstanceGroup {
  readonly name: string;
  readonly kind: "KIND_AUTO" | "KIND_GPU" | "KIND_CPU" | "KIND_MODEL";
  readonly count: number;
  readonly rate_limiter?: { readonly resources: readonly RateLimiterResource[]; readonly priority: number };
  readonly gpus: readonly number[];
  readonly secondary_devices: readonly { readonly kind: "KIND_NVDLA"; readonly device_id: number }[];
  readonly profile: readonly string[];
  readonly passive: boolean;
  readonly host_policy: string;
}

export interface WarmupInput {
  readonly data_type: DataType;
  readonly dims: readonly number[];
  readonly zero_data?: boolean;
  readonly random_data?: boolean;
  readonly input_data_file?: string;
}

export interface ModelWarmup {
  readonly name: string;
  readonly batch_size: number;
  readonly inputs: Readonly<Record<string, WarmupInput>>;
  readonly count: number;
}

export interface MetricControl {
  readonly metric_identifier?: { readonly family: string };
  readonly histogram_options?: { readonly buckets: readonly number[] };
}

export interface ModelConfig {
  readonly name: string;
  readonly platform: string;
  readonly backend: string;
  readonly runtime: string;
  readonly version_policy?: VersionPolicy;
  readonly max_batch_size: number;
  readonly input: readonly ModelInput[];
  readonly output: readonly ModelOutput[];
  readonly batch_input: readonly BatchInput[];
  readonly batch_output: readonly BatchOutput[];
  readonly optimization?: OptimizationPolicy;
  /** At most one of this member and the next two is present. */
  readonly dynamic_batching?: DynamicBatching;
  readonly sequence_batching?: SequenceBatching;
  readonly ensemble_scheduling?: EnsembleScheduling;
  readonly instance_group: readonly InstanceGroup[];
  readonly default_model_filename: string;
  readonly cc_model_filenames: Strings;
  readonly metric_tags: Strings;
  readonly parameters: Readonly<Record<string, { readonly string_value: string }>>;
  readonly model_warmup: readonly ModelWarmup[];
  readonly model_operations?: { readonly op_library_filename: readonly string[] };
  readonly model_transaction_policy?: { readonly decoupled: boolean };
  readonly model_repository_agents?: { readonly agents: readonly Accelerator[] };
  readonly response_cache?: { readonly enable: boolean };
  readonly model_metrics?: { readonly metric_control: readonly MetricControl[] };
}

/**
 * The KServe name of a configuration's data type.
 * @throws TypeError for TYPE_INVALID, which no validated configuration holds
 */
export function kserveType(type: DataType): Datatype {
  if (type === "TYPE_INVALID") throw new TypeError("TYPE_INVALID is no tensor's type");
  return type === "TYPE_STRING" ? "BYTES" : (type.slice("TYPE_".length) as Datatype);
}

/** The inverse of `kserveType`. */
export function configType(datatype: Datatype): DataType {
  return datatype === "BYTES" ? "TYPE_STRING" : `TYPE_${datatype}`;
}
