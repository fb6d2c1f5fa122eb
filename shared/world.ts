/**
 * The time and randomness of a process. The queue's loops take both only from here, so the
 * simulation (test/simulation) gives each simulated process a world of its own.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";

export interface World {
  /** Ms on a clock that never goes back and starts at any value. */
  now(): number;
  /**
   * Calls `act` after this many ms, or up to about 1.5 ms later.
   * @returns a function that cancels the call
   */
  after(ms: number, act: () => void): () => void;
  /** Calls `act` at a time of `now`, late by much less than a ms. Infinity: never. */
  at(time: number, act: () => void): () => void;
  /** Resolves after the event loop has handled all events that have arrived. */
  turn(): Promise<void>;
  /** A number from 0 to below 1. */
  random(): number;
  /** A UUID that no other process makes. */
  uuid(): string;
  /** This many random bytes, as hexadecimal digits. */
  hex(bytes: number): string;
}

/** The world of a process outside simulations. */
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
 * Node's timers count whole milliseconds and fire late. So the last millisecond of a wait spins
 * through the event loop, because a batch window must not grow by 2 ms.
 */
function spinTo(time: number, act: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  let spin: NodeJS.Immediate | undefined;
  const arm = () => {
    const left = time - performance.now();
    // Calls even a late `act` through the event loop, because a loop of such waits would starve all
    // other work.
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
 * A Node timer is late by up to about a millisecond. Spinning takes the processor, so the wait
 * spins no longer than that.
 */
const SPIN_BELOW_MS = 1;
/** The longest single timer: Node's timers take at most 2^31 - 1 ms. */
const MAX_TIMER_MS = 60_000;
