/**
 * Checks a configuration without the model's graph, in Triton's words if Triton has the same error.
 * Runs after `completeDefaults`, and again after `completeFromGraph` has changed the configuration.
 */
import type { DynamicBatching, InstanceGroup, ModelConfig } from "#shared/model/config.js";
import { LoadError } from "../../thread/load-error.js";
import { isEnsemble, validateEnsemble } from "./ensemble.js";
import { validateFigures } from "./figures.js";
import { isDecoupled, validateIteration } from "./iteration.js";
import { validateSequenceBatching } from "./sequence.js";
import { parametersOfSequences } from "./verdicts.js";

/**
 * Checks everything but the tensors, because `completeFromGraph` may still add tensors.
 * @param gpus ids of the GPUs that instances can run on
 * @throws LoadError
 */
export function validateConfig(config: ModelConfig, gpus: readonly number[]): void {
  const { name } = config;
  if (name === "") throw new LoadError("model configuration must specify 'name'");
  if (isEnsemble(config)) validateEnsemble(config);
  else validateBackend(config);
  if (config.max_batch_size < 0) throw new LoadError(`'max_batch_size' must be non-negative value for ${name}`);
  if (config.dynamic_batching !== undefined) validateDynamicBatching(config, config.dynamic_batching);
  if (config.sequence_batching !== undefined) validateSequenceBatching(config, config.sequence_batching);
  else if (!isEnsemble(config)) refuseParametersOfSequences(config);
  if (!isEnsemble(config)) validateIteration(config);
  if (isDecoupled(config) && config.response_cache?.enable === true) {
    const scope = "with 'decoupled' transaction policy";
    throw new LoadError(
      `Response Cache does not currently support model ${name} ${scope}. Please disable the response cache.`,
    );
  }
  validateFigures(config);
  validateFileNames(config);
  if (isEnsemble(config)) return;
  if (config.instance_group.length === 0) throw new LoadError(`must specify one or more 'instance group's for ${name}`);
  validateGroups(config, gpus);
}

/** @throws LoadError for a model without sequences, if its parameters concern sequences */
export function refuseParametersOfSequences({ name, parameters }: Pick<ModelConfig, "name" | "parameters">): void {
  const given = parametersOfSequences.find((parameter) => parameters[parameter] !== undefined);
  if (given === undefined) return;
  throw new LoadError(`parameter '${given}' needs sequence batching, which ${name} does not have`);
}

function validateBackend({ name, platform, backend }: ModelConfig): void {
  if (platform === "" && backend === "") throw new LoadError(`must specify 'platform' or 'backend' for '${name}'`);
  if (backend === "") {
    const instead = 'write platform: "onnxruntime_onnx", beside a model.onnx in the folder of each version';
    throw new LoadError(`unexpected platform type '${platform}' for ${name}: ${instead}`);
  }
  if (backend !== "onnxruntime") {
    throw new LoadError(`backend '${backend}' is not supported: model '${name}' needs backend 'onnxruntime'`);
  }
  if (platform !== "onnxruntime_onnx") {
    throw new LoadError(`unexpected 'platform' and 'backend' pair, got:${platform}, ${backend}`);
  }
}

function validateDynamicBatching({ name, max_batch_size }: ModelConfig, batching: DynamicBatching): void {
  for (const size of batching.preferred_batch_size) {
    if (size <= 0) throw new LoadError(`dynamic batching preferred size must be positive for ${name}`);
    if (size > max_batch_size) {
      throw new LoadError(`dynamic batching preferred size must be <= max batch size for ${name}`);
    }
  }
  const { priority_levels: levels, default_priority_level: level } = batching;
  if (levels !== 0) {
    const range = `in range [1, ${levels}] for ${name}`;
    if (level === 0 || level > levels) throw new LoadError(`default priority level must be ${range}`);
    for (const key of Object.keys(batching.priority_queue_policy)) {
      if (key === "0" || BigInt(key) > levels) {
        throw new LoadError(`priority queue policy must have priority level ${range}`);
      }
    }
  }
  if (!batching.preserve_ordering) return;
  if (levels > 1) {
    throw new LoadError(`Only one priority level is allowed when 'preserve_ordering' is true for ${name}`);
  }
  const delays = [batching.default_queue_policy, ...Object.values(batching.priority_queue_policy)].some(
    (policy) => policy?.timeout_action === "DELAY" && policy.default_timeout_microseconds !== 0,
  );
  if (delays) {
    const conflict = "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true";
    throw new LoadError(`${conflict} for ${name}`);
  }
}

/**
 * Checks the places of the instances, after `completeDefaults`.
 * @param gpus ids of the GPUs that instances can run on
 * @throws LoadError
 */
export function validateGroups(config: ModelConfig, gpus: readonly number[]): void {
  for (const group of config.instance_group) validateGroup(config, group, gpus);
}

function validateGroup({ name, platform }: ModelConfig, group: InstanceGroup, gpus: readonly number[]): void {
  const which = `instance group ${group.name} of model ${name}`;
  if (group.kind === "KIND_GPU") {
    if (gpus.length === 0) throw new LoadError(`${which} has kind KIND_GPU but no GPUs are available`);
    const unknown = group.gpus.find((gpu) => !gpus.includes(gpu));
    if (unknown !== undefined) {
      throw new LoadError(
        `${which} specifies invalid or unsupported gpu id ${unknown}. Available GPUs are: ${gpus.join(", ")}`,
      );
    }
  } else if (group.gpus.length > 0) {
    throw new LoadError(`${which} has kind ${group.kind} but specifies one or more GPUs`);
  }
  if (group.profile.length > 0) {
    const only = "specifies profile field which is only supported for TensorRT models";
    throw new LoadError(`${which} and platform ${platform} ${only}`);
  }
}

/**
 * Refuses names of files outside the model's directory, by the name alone: this check opens no
 * file.
 * @throws LoadError
 */
function validateFileNames(config: ModelConfig): void {
  const named: [what: string, name: string][] = [
    ["default_model_filename", config.default_model_filename],
    ...Object.values(config.cc_model_filenames).map((name): [string, string] => ["cc_model_filenames", name]),
    ...config.output.map(({ name, label_filename: file }): [string, string] => [`label_filename of '${name}'`, file]),
    ...(config.sequence_batching?.state ?? []).flatMap((state) =>
      state.initial_state.map((initial): [string, string] => [
        `data_file of state '${state.input_name}'`,
        initial.data_file ?? "",
      ]),
    ),
    ...config.model_warmup.flatMap((warmup) =>
      Object.values(warmup.inputs).map((input): [string, string] => [
        `input_data_file of warmup '${warmup.name}'`,
        input.input_data_file ?? "",
      ]),
    ),
  ];
  for (const [what, name] of named) {
    if (!staysInside(name)) {
      throw new LoadError(`${what}: '${name.replaceAll("\0", "\\0")}' must stay inside the model directory`);
    }
  }
}

/** Refuses backslashes too, because a worker on another system may read the repository. */
function staysInside(name: string): boolean {
  return !name.startsWith("/") && !/[\0\\]/.test(name) && !name.split("/").includes("..");
}
