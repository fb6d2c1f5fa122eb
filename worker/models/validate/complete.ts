/**
 * Fills in what a configuration leaves out, in two stages. `completeDefaults` (stage A) needs only
 * the directory; `completeFromGraph` (stage B) needs the model's own inputs and outputs. An
 * explicit `max_batch_size: 0` cannot be told from an absent one, and does not survive stage B.
 */
import {
  configType,
  type InstanceGroup,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
} from "#shared/model/config.js";
import type { GraphMetadata, GraphTensor } from "../../onnx/graph.js";
import { LoadError } from "../../thread/load-error.js";

/** What stage A needs to know beside the configuration. */
export interface DirectoryFacts {
  /** The model directory's name. */
  readonly directory: string;
  /** Names in the first version directory, in string order; undefined where there is none. */
  readonly firstVersionFiles: readonly string[] | undefined;
  /** Ids of the GPUs that instances can run on. */
  readonly gpus: readonly number[];
}

export interface CompletionOptions {
  /** Whether the graph may fill in inputs, outputs and batching. */
  readonly autoComplete: boolean;
  /** The `max_batch_size` where the graph can batch and the configuration says nothing. */
  readonly defaultMaxBatchSize: number;
}

/** The values that Triton uses. */
export const defaultCompletion: CompletionOptions = { autoComplete: true, defaultMaxBatchSize: 4 };

const BACKEND = "onnxruntime";
const PLATFORM = "onnxruntime_onnx";
const FILENAME = "model.onnx";
/** Triton's default: an idle sequence ends after a second. */
const IDLE_MICROSECONDS = 1_000_000;
/**
 * Instances of a group on the CPU where the configuration says nothing, as Triton's ONNX backend
 * has it.
 */
const CPU_INSTANCES = 2;

/** Stage A. Completing a configuration twice changes nothing. */
export function completeDefaults(config: ModelConfig, facts: DirectoryFacts): ModelConfig {
  const named = completeBackend({ ...config, name: config.name || facts.directory }, facts);
  const batched = completeBatching({
    ...named,
    version_policy: named.version_policy ?? { latest: { num_versions: 1 } },
  });
  if (batched.ensemble_scheduling !== undefined) return batched;
  return {
    ...batched,
    optimization: {
      priority: "PRIORITY_DEFAULT",
      gather_kernel_buffer_threshold: 0,
      eager_batching: false,
      ...batched.optimization,
      input_pinned_memory: batched.optimization?.input_pinned_memory ?? { enable: true },
      output_pinned_memory: batched.optimization?.output_pinned_memory ?? { enable: true },
    },
    instance_group: completeGroups(batched, facts.gpus),
  };
}

/**
 * Stage B. What it adds lacks stage A's defaults, so stage A runs once more after it.
 * @throws LoadError when the configuration batches and the graph cannot
 */
export function completeFromGraph(config: ModelConfig, graph: GraphMetadata, options: CompletionOptions): ModelConfig {
  const told = (config.input.length > 0 || config.batch_input.length > 0) && config.output.length > 0;
  if (!options.autoComplete || told) return config;
  const batchable = [...graph.inputs, ...graph.outputs].every(({ dims }) => dims[0] === -1);
  if (!batchable && config.max_batch_size !== 0) {
    const why = "model does not support batching while non-zero max_batch_size is specified";
    throw new LoadError(`autofill failed for model '${config.name}': ${why}`);
  }
  const size = batchable && config.max_batch_size === 0 ? options.defaultMaxBatchSize : config.max_batch_size;
  const scheduled = config.dynamic_batching ?? config.sequence_batching ?? config.ensemble_scheduling;
  return {
    ...config,
    max_batch_size: size,
    input: config.input.length > 0 ? config.input : graph.inputs.map((tensor) => inputOf(tensor, size > 0)),
    output: config.output.length > 0 ? config.output : graph.outputs.map((tensor) => outputOf(tensor, size > 0)),
    ...(size > 1 && scheduled === undefined && { dynamic_batching: plainDynamicBatching }),
  };
}

/** What `dynamic_batching {}` means. */
const plainDynamicBatching = {
  preferred_batch_size: [],
  max_queue_delay_microseconds: 0,
  preserve_ordering: false,
  priority_levels: 0,
  default_priority_level: 0,
  priority_queue_policy: {},
} as const;

function completeBackend(config: ModelConfig, { firstVersionFiles }: DirectoryFacts): ModelConfig {
  const { platform, default_model_filename: filename } = config;
  const told = platform === PLATFORM || filename === FILENAME;
  const untold = platform === "" && filename === "";
  const found = told || (untold && firstVersionFiles?.includes(FILENAME) === true);
  const backend = config.backend === "" && found ? BACKEND : config.backend;
  if (backend !== BACKEND) return config;
  return { ...config, backend, platform: platform || PLATFORM, default_model_filename: filename || FILENAME };
}

function completeBatching(config: ModelConfig): ModelConfig {
  const { dynamic_batching: dynamic, sequence_batching: sequence } = config;
  const sizes = (given: readonly number[]): readonly number[] =>
    given.length === 0 && config.max_batch_size > 0 ? [config.max_batch_size] : given;
  if (dynamic !== undefined) {
    return { ...config, dynamic_batching: { ...dynamic, preferred_batch_size: sizes(dynamic.preferred_batch_size) } };
  }
  if (sequence === undefined) return config;
  const { oldest } = sequence;
  return {
    ...config,
    sequence_batching: {
      ...sequence,
      max_sequence_idle_microseconds: sequence.max_sequence_idle_microseconds || IDLE_MICROSECONDS,
      ...(oldest && { oldest: { ...oldest, preferred_batch_size: sizes(oldest.preferred_batch_size) } }),
    },
  };
}

function completeGroups({ name, backend, instance_group }: ModelConfig, gpus: readonly number[]): InstanceGroup[] {
  const groups = instance_group.length > 0 ? instance_group : [{ ...implicitGroup, name }];
  return groups.map((group, index) => {
    const allThere = gpus.length > 0 && group.gpus.every((gpu) => gpus.includes(gpu));
    const automatic = allThere ? "KIND_GPU" : "KIND_CPU";
    const kind = group.kind === "KIND_AUTO" ? automatic : group.kind;
    const count = kind === "KIND_CPU" && backend === BACKEND ? CPU_INSTANCES : 1;
    return {
      ...group,
      name: group.name || `${name}_${index}`,
      kind,
      count: group.count < 1 ? count : group.count,
      gpus: kind === "KIND_GPU" && group.gpus.length === 0 ? gpus : group.gpus,
    };
  });
}

const implicitGroup: InstanceGroup = {
  name: "",
  kind: "KIND_AUTO",
  count: 0,
  gpus: [],
  secondary_devices: [],
  profile: [],
  passive: false,
  host_policy: "",
};

/**
 * Describes a graph's tensor as a configuration does. A scalar becomes `[1]`, which is reshaped
 * away where there is a batch dimension.
 */
function tensorOf({ name, datatype, dims }: GraphTensor, batching: boolean) {
  const shape = batching ? dims.slice(1) : dims;
  const scalar = shape.length === 0;
  return {
    name,
    data_type: configType(datatype),
    dims: scalar ? [1] : shape,
    ...(scalar && batching && { reshape: { shape: [] } }),
    is_shape_tensor: false,
    is_non_linear_format_io: false,
  };
}

function inputOf(tensor: GraphTensor, batching: boolean): ModelInput {
  return { ...tensorOf(tensor, batching), format: "FORMAT_NONE", allow_ragged_batch: false, optional: false };
}

function outputOf(tensor: GraphTensor, batching: boolean): ModelOutput {
  return { ...tensorOf(tensor, batching), label_filename: "" };
}
