/** The device that a worker computes on, and the places on that device for a model. Pure. */
import type { InstanceGroup } from "#shared/model/config.js";
import { onCpu, type Placement, type Provider } from "../onnx/providers.js";
import type { TurnMemory } from "../onnx/turns.js";
import { LoadError } from "../thread/load-error.js";

export interface Device {
  /** The place of a model whose configuration names none. */
  readonly placement: Placement;
  /** The numbers of the GPUs that this process sees; empty on the CPU. */
  readonly gpus: readonly number[];
  /** Whether the settings name the GPU of `placement`; absent: it is the first that there is. */
  readonly isChosen?: boolean;
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

/** An instance group of a model's configuration. */
export interface WantedInstances extends WantedPlace {
  /** How many instances to run on each GPU, or on the CPU. */
  readonly count: number;
  /** The GPUs that the configuration itself names; `gpus` are all if it names none. */
  readonly named: readonly number[];
}

/** The place of each instance of a model. */
export type Places = readonly [Placement, ...Placement[]];

/** Most instances of a model in a worker: each has a thread, a session, and a copy of the model. */
const MOST_INSTANCES = 32;

/**
 * The places for all instances of a model, the preferred places first. The next ones are for a
 * worker that cannot load the model there.
 *
 * @param groups empty for a model without an instance group
 * @throws LoadError if there are too many of them
 */
export function instancePlaces(device: Device, groups: readonly WantedInstances[]): readonly [Places, ...Places[]] {
  const wanted = groups.map((group) => ({ ...group, cards: cardsOf(device, group) }));
  const asked = wanted.reduce((sum, { count, cards }) => sum + count * cards.length, 0);
  if (asked > MOST_INSTANCES) {
    throw new LoadError(
      `instance_group asks for ${asked} instances in each worker, but the most are ${MOST_INSTANCES}`,
    );
  }
  const each = wanted.flatMap(({ cards, ...group }) =>
    cards.flatMap((gpus) => Array.from({ length: group.count }, () => placementsOf(device, { ...group, gpus }))),
  );
  const [first = placementsOf(device, undefined), ...others] = each;
  const preferred: Places = [first[0], ...others.map(([place]) => place)];
  if ([first, ...others].every(({ length }) => length === 1)) return [preferred];
  const last = (places: Places): Placement => places.at(-1) ?? places[0];
  return [preferred, [last(first), ...others.map(last)]];
}

/**
 * The GPUs for an instance, for each instance that `count` multiplies. A worker for one GPU
 * (BATON_GPU) leaves the other GPUs of a group to other workers.
 */
function cardsOf(
  { placement, isChosen }: Device,
  { kind, gpus, named }: WantedInstances,
): readonly (readonly number[])[] {
  const { gpu } = placement;
  const onOne = kind === "KIND_CPU" || gpu === undefined || (isChosen === true && named.includes(gpu));
  return onOne || named.length < 2 ? [gpus] : named.map((one) => [one]);
}

/**
 * The places for a model, the preferred place first. The model's configuration comes before the
 * worker's settings, as in Triton.
 *
 * @param wanted undefined for a model without an instance group
 */
export function placementsOf({ placement, orCpu }: Device, wanted: WantedPlace | undefined): Places {
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
