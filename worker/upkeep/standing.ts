/** Where a pin stands in the fleet: who serves it, or since when nobody does. Pure. */
import { pinOf, pinText } from "#shared/queue/address.js";
import type { AnnouncedModel } from "#shared/queue/work/announced-lanes.js";
import type { ServedPin } from "#shared/queue/pins.js";

/** What the workers of a fleet serve. */
export interface Serving {
  /** Those that take work. */
  readonly living: readonly AnnouncedModel[];
  /** Those that fell silent lately, and may be back. */
  readonly missed: readonly AnnouncedModel[];
  /** Those that left lately by themselves. */
  readonly left: readonly AnnouncedModel[];
}

/**
 * - `served`: a living worker serves it
 * - `awaited`: nobody does, and who did may be back
 * - `retired`: those that served it have left, and others serve its model; gateways may not all
 *   know it yet
 * - `forgotten`: nobody has served it for so long that no gateway takes requests for it
 */
export type Standing = "served" | "awaited" | "retired" | "forgotten";

/** The rules are those by which gateways look for the models that sequences are pinned to. */
export function standingOf(pin: ServedPin, { living, missed, left }: Serving): Standing {
  const text = pinText(pin);
  const isOf = (model: AnnouncedModel) => model.name === pin.model && pinText(pinOf(model)) === text;
  if (living.some(isOf)) return "served";
  if (missed.some(isOf)) return "awaited";
  if (!left.some(isOf)) return "forgotten";
  return [...living, ...missed].some(({ name }) => name === pin.model) ? "retired" : "awaited";
}

/** Whether sequences of the pin can go on under a version that is served. */
export function hasHeir({ model, version }: ServedPin, { living }: Serving): boolean {
  return living.some(({ name, sequence }) => {
    const versions = sequence?.takesStatesOf ?? [];
    return name === model && (versions.includes(version) || versions.includes("*"));
  });
}
