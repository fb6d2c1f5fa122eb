/** What a worker computes on, and where a model is put on it. Pure. */
import type { InstanceGroup } from "#shared/model/config.js";
import { onCpu, type Placement, type Provider } from "../onnx/providers.js";
import type { TurnMemory } from "../onnx/turns.js";

export interface Device {
  /** Where a model goes that says nothing about it. */
  readonly placement: Placement;
  /** The numbers of the GPUs that this process sees; none where it computes on the CPU. */
  readonly gpus: readonly number[];
  /** Whether a model that the GPU cannot compute goes on the CPU: the setting names it, too. */
  readonly orCpu: boolean;
  /** The memory through which the threads of this process take turns at the GPU. */
  readonly turns: TurnMemory;
}

/** What a model's configuration says of where it runs. */
export interface WantedPlace extends Pick<InstanceGroup, "kind" | "gpus"> {
  /** Whether the configuration itself says KIND_GPU. */
  readonly needsGpu: boolean;
}

/**
 * The places where a model may be put, the preferred one first. What its configuration says comes
 * before the worker's settings, as in Triton.
 *
 * @param wanted undefined for a model without an instance group
 */
export function placementsOf(
  { placement, orCpu }: Device,
  wanted: WantedPlace | undefined,
): readonly [Placement, ...Placement[]] {
  if (wanted?.kind === "KIND_CPU" || placement.gpu === undefined) return [onCpu];
  const { gpus = [], needsGpu = false } = wanted ?? {};
  const [first = placement.gpu] = gpus;
  const onGpu = { ...placement, gpu: gpus.includes(placement.gpu) ? placement.gpu : first };
  return orCpu && !needsGpu ? [onGpu, onCpu] : [onGpu];
}

/** @returns the providers of a session whose first one is `found`, of those that are wanted */
export function sessionProviders(found: Provider, wanted: readonly Provider[]): Placement["providers"] {
  // CUDA takes what TensorRT cannot compute.
  return found === "tensorrt" && wanted.includes("cuda") ? ["tensorrt", "cuda"] : [found];
}
