/**
 * Fills in absent fields of a configuration from the directory alone: Triton's stage A. Stage B is
 * in `from-graph.ts`.
 */
import type { InstanceGroup, ModelConfig } from "#shared/model/config.js";

/** The facts that stage A needs beside the configuration. */
export interface DirectoryFacts {
  /** The model directory's name. */
  readonly directory: string;
  /**
   * Names in the first version directory, in string order; undefined if there is no such directory.
   */
  readonly firstVersionFiles: readonly string[] | undefined;
  /** Ids of the GPUs that instances can run on. */
  readonly gpus: readonly number[];
}

const BACKEND = "onnxruntime";
const PLATFORM = "onnxruntime_onnx";
const FILENAME = "model.onnx";
/** Triton's default: an idle sequence ends after a second. */
const IDLE_MICROSECONDS = 1_000_000;
/**
 * Default number of a group's instances in a worker. Triton's ONNX backend has two on the CPU; a
 * fleet has workers instead.
 */
const INSTANCES = 1;
/** The default in digests, which is Triton's, so that digests stay as they are. */
const CPU_INSTANCES_OF_DIGEST = 2;

/** Stage A. A second completion changes nothing. */
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
  // Beside sequences and steps, `dynamic_batching` has queue policies alone (`tutorial.ts`).
  if (dynamic !== undefined && sequence === undefined && config.ensemble_scheduling === undefined) {
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

/**
 * The instance groups for the digest of a model: as on a worker without a GPU, so that workers with
 * GPUs and without serve the same model.
 */
export function groupsOfDigest(written: ModelConfig, facts: DirectoryFacts): InstanceGroup[] {
  const { backend, instance_group: groups } = completeDefaults(written, { ...facts, gpus: [] });
  return groups.map((group, index) => {
    const isCounted = (written.instance_group[index]?.count ?? 0) >= 1;
    const onCpu = group.kind === "KIND_CPU" && backend === BACKEND;
    return !isCounted && onCpu ? { ...group, count: CPU_INSTANCES_OF_DIGEST } : group;
  });
}

function completeGroups({ name, instance_group }: ModelConfig, gpus: readonly number[]): InstanceGroup[] {
  const groups = instance_group.length > 0 ? instance_group : [{ ...implicitGroup, name }];
  return groups.map((group, index) => {
    const allThere = gpus.length > 0 && group.gpus.every((gpu) => gpus.includes(gpu));
    const automatic = allThere ? "KIND_GPU" : "KIND_CPU";
    const kind = group.kind === "KIND_AUTO" ? automatic : group.kind;
    return {
      ...group,
      name: group.name || `${name}_${index}`,
      kind,
      count: group.count < 1 ? INSTANCES : group.count,
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
