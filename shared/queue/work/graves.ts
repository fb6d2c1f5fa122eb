/**
 * A grave is what a gone worker leaves in one lane: entries that are pending with it, and that the
 * living take. Its text is the member of the registry's sorted set of open graves.
 */
import type { Lane } from "../address.js";
import { laneKeys } from "../keys.js";

export interface Grave {
  /** The worker's name, which is its consumer's name in the lane's group. */
  readonly worker: string;
  /** The key of the lane's ready stream. */
  readonly ready: string;
}

export function graveOf(worker: string, lane: Lane): Grave {
  return { worker, ready: laneKeys(lane).ready };
}

/** `<worker> <key>`: neither holds a space. */
export function graveText({ worker, ready }: Grave): string {
  return `${worker} ${ready}`;
}

/** The inverse of `graveText`. */
export function graveIn(text: string): Grave {
  const end = text.indexOf(" ");
  return { worker: text.slice(0, end), ready: text.slice(end + 1) };
}
