/**
 * What a process has of the world beside its connections: time and chance. The loops of the queue
 * ask nothing else for them, so the simulation (test/simulation) gives each of its processes a
 * world of its own.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";

export interface World {
  /** Ms on a clock that never goes back. It begins anywhere. */
  now(): number;
  /**
   * Calls `act` after this many ms, or up to about a ms and a half later.
   * @returns a function that takes it back
   */
  after(ms: number, act: () => void): () => void;
  /** Does the same at a time of `now`, late by much less than a ms. Infinity: never. */
  at(time: number, act: () => void): () => void;
  /** Resolves when the event loop has served what is there already. */
  turn(): Promise<void>;
  /** A number from 0 to below 1. */
  random(): number;
  /** A UUID that no other process makes. */
  uuid(): string;
  /** So many random bytes, as hexadecimal digits. */
  hex(bytes: number): string;
}

/** The world of a process that is not simulated. */
export const realWorld: World = {
  now: () => performance.now(),
  after(ms, act) {
    const timer = setTimeout(act, ms);
    return () => clearTimeout(timer);
  },
  at: spinTo,
  turn: () => nextTurn(),
  random: Math.random,
  uuid: randomUUID,
  hex: (bytes) => randomBytes(bytes).toString("hex"),
};

/**
 * Node's timers count whole milliseconds and fire late, so the last millisecond of a wait is spun
 * through the event loop: a batch window must not grow by 2 ms.
 */
function spinTo(time: number, act: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  let spin: NodeJS.Immediate | undefined;
  const arm = () => {
    const left = time - performance.now();
    // Even then it acts through the event loop: a loop of such waits must not starve all others.
    if (left <= 0) spin = setImmediate(act);
    else if (left > SPIN_BELOW_MS)
      timer = setTimeout(arm, Math.min(Math.floor(left - SPIN_BELOW_MS) + 1, MAX_TIMER_MS));
    else spin = setImmediate(arm);
  };
  if (time !== Infinity) arm();
  return () => {
    clearTimeout(timer);
    clearImmediate(spin);
  };
}

/**
 * A Node timer is late by up to about a millisecond. Spinning takes the processor, so it lasts no
 * longer.
 */
const SPIN_BELOW_MS = 1;
/** A wait is checked at least this often, since Node's timers take no more than 2^31 - 1 ms. */
const MAX_TIMER_MS = 60_000;
