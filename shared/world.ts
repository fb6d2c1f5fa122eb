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
  /** Calls `act` at a time of `now`, or up to about 1.5 ms later. Infinity: never. */
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
  at: waitUntil,
  turn: () => nextTurn(),
  random: Math.random,
  uuid: randomUUID,
  hex: (bytes) => randomBytes(bytes).toString("hex"),
};

/**
 * Node's timers count whole milliseconds, so the wait ends up to about 1.5 ms late. It does not
 * spin through the last of them: that takes the processor from Redis and the gateway beside it, and
 * closes batches before they have filled (decision 6).
 */
function waitUntil(time: number, act: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  let turn: NodeJS.Immediate | undefined;
  const arm = () => {
    const left = time - performance.now();
    // Calls even a late `act` through the event loop, because a loop of such waits would starve all
    // other work.
    if (left <= 0) turn = setImmediate(act);
    else timer = setTimeout(arm, Math.min(Math.ceil(left), MAX_TIMER_MS));
  };
  if (time !== Infinity) arm();
  return () => {
    clearTimeout(timer);
    clearImmediate(turn);
  };
}

/** The longest single timer: Node's timers take at most 2^31 - 1 ms. */
const MAX_TIMER_MS = 60_000;
