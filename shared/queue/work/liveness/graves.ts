/**
 * A grave is a lane in which a gone worker has left pending entries, until living workers take
 * them. Its text is the member of the registry's sorted set of open graves.
 */
import type { Lane } from "../../address.js";
import { laneKeys } from "../../keys.js";

export interface Grave {
  /** The worker's name, which is its consumer's name in the lane's group. */
  readonly worker: string;
  /** The key of the lane's ready stream. */
  readonly ready: string;
}

/** A grave with the last sign of life of its worker, in Redis ms. */
export interface DatedGrave extends Grave {
  readonly seenAt: number;
}

export function graveOf(worker: string, lane: Lane): Grave {
  return { worker, ready: laneKeys(lane).ready };
}

/** `<worker> <key>`: neither part has a space. */
export function graveText({ worker, ready }: Grave): string {
  return `${worker} ${ready}`;
}

/** The inverse of `graveText`. */
export function graveIn(text: string): Grave {
  const end = text.indexOf(" ");
  return { worker: text.slice(0, end), ready: text.slice(end + 1) };
}
