/**
 * The standing of a pin in the fleet: whether a worker serves the pin, and if not, for how long.
 * Pure.
 */
import { pinOf, pinText } from "#shared/queue/address.js";
import type { AnnouncedModel } from "#shared/queue/work/liveness/announced-lanes.js";
import type { ServedPin } from "#shared/queue/pins.js";

/** The models of a fleet's workers. */
export interface Serving {
  /** Models of workers that take work. */
  readonly living: readonly AnnouncedModel[];
  /** Models of workers that fell silent lately, and may come back. */
  readonly missed: readonly AnnouncedModel[];
  /** Models of workers that left lately by themselves. */
  readonly left: readonly AnnouncedModel[];
}

/**
 * - `served`: a living worker serves the pin
 * - `awaited`: no worker serves the pin, and a worker that did may come back
 * - `retired`: the workers that served the pin have left, and other workers serve its model; some
 *   gateways may not know this yet
 * - `forgotten`: no worker has served the pin for so long that no gateway takes requests for it
 */
export type Standing = "served" | "awaited" | "retired" | "forgotten";

/** Gateways find the models of pinned sequences by the same rules. */
export function standingOf(pin: ServedPin, { living, missed, left }: Serving): Standing {
  const text = pinText(pin);
  const isOf = (model: AnnouncedModel) => model.name === pin.model && pinText(pinOf(model)) === text;
  if (living.some(isOf)) return "served";
  if (missed.some(isOf)) return "awaited";
  if (!left.some(isOf)) return "forgotten";
  return [...living, ...missed].some(({ name }) => name === pin.model) ? "retired" : "awaited";
}

/** Whether sequences of the pin can continue under a version that a living worker serves. */
export function hasHeir({ model, version }: ServedPin, { living }: Serving): boolean {
  return living.some(({ name, sequence }) => {
    const versions = sequence?.takesStatesOf ?? [];
    return name === model && (versions.includes(version) || versions.includes("*"));
  });
}
