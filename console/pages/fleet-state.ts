/** The fleet, as the gateway last described it, and its changes since the console was opened. */
import { effect, signal } from "@preact/signals";
import type { Fleet, OwnFleet } from "../../gateway/answers.js";
import { usePolled, type Polled } from "../client/poll.js";
import { changesBetween, type Change } from "./changes.js";

export type AnyFleet = Fleet | OwnFleet;

export interface TimedChange extends Change {
  readonly id: number;
  readonly at: number;
}

const MOST_CHANGES = 100;

/** The newest first. */
export const changes = signal<readonly TimedChange[]>([]);

/** Whether the key shows the whole fleet, and not only the models and the load of its owner. */
export function isWhole(fleet: AnyFleet): fleet is Fleet {
  return "workers" in fleet;
}

let watched: Polled<AnyFleet> | undefined;
let last: Fleet | undefined;
let count = 0;

export function useFleet(): Polled<AnyFleet> {
  const polled = usePolled<AnyFleet>("/v2/fleet");
  if (watched !== polled) {
    watched = polled;
    effect(() => note(polled.answer.value));
  }
  return polled;
}

function note(fleet: AnyFleet | undefined): void {
  if (fleet === undefined || !isWhole(fleet)) return;
  const found = last === undefined ? [] : changesBetween(last, fleet);
  last = fleet;
  if (found.length === 0) return;
  const timed = found.map((one) => ({ ...one, id: (count += 1), at: Date.now() }));
  changes.value = [...timed.toReversed(), ...changes.peek()].slice(0, MOST_CHANGES);
}
