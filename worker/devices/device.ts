/** The device that a worker computes on, and the places on that device for a model. Pure. */
import type { InstanceGroup } from "#shared/model/config.js";
import { onCpu, type Placement, type Provider } from "../onnx/providers.js";
import type { TurnMemory } from "../onnx/turns.js";

export interface Device {
  /** The place of a model whose configuration names none. */
  readonly placement: Placement;
  /** The numbers of the GPUs that this process sees; empty on the CPU. */
  readonly gpus: readonly number[];
  /**
   * Whether a model may run on the CPU if the GPU cannot run the model: BATON_PROVIDERS names the
   * CPU, too.
   */
  readonly orCpu: boolean;
  /** The memory through which the threads of this process take turns at the GPU. */
  readonly turns: TurnMemory;
}

/** The place that a model's configuration asks for. */
export interface WantedPlace extends Pick<InstanceGroup, "kind" | "gpus"> {
  /** Whether the configuration itself says KIND_GPU. */
  readonly needsGpu: boolean;
}

/**
 * The places for a model, the preferred place first. The model's configuration comes before the
 * worker's settings, as in Triton.
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

/**
 * @returns the providers of a session that begins with `found`; `wanted` has the providers of the
 *   settings
 */
export function sessionProviders(found: Provider, wanted: readonly Provider[]): Placement["providers"] {
  // CUDA computes the operators that TensorRT cannot.
  return found === "tensorrt" && wanted.includes("cuda") ? ["tensorrt", "cuda"] : [found];
}
