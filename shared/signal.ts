/**
 * Wakes one waiter when something has changed. A notification carries nothing. One that nobody
 * waits for is kept for the next wait; several count as one.
 */
export class Signal {
  /** Ends the wait; undefined while nobody waits. */
  #wake: (() => void) | undefined;
  /** Whether a notification came while nobody waited: the next wait then returns at once. */
  #pending = false;

  notify(): void {
    if (this.#wake === undefined) this.#pending = true;
    else this.#wake();
  }

  /**
   * Resolves at the next notification, or at `untilMs` on `performance.now()`'s clock. There may be
   * one waiter at a time. Node's timers count whole milliseconds and fire late, so the last
   * millisecond of a wait is spun through the event loop: a batch window must not grow by 2 ms.
   */
  wait(untilMs: number): Promise<void> {
    if (this.#pending) {
      this.#pending = false;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      let spin: NodeJS.Immediate | undefined;
      const done = () => {
        this.#wake = undefined;
        clearTimeout(timer);
        clearImmediate(spin);
        resolve();
      };
      const arm = () => {
        const left = untilMs - performance.now();
        // Even then it resolves through the event loop: a loop of such waits must not starve all
        // others.
        if (left <= 0) spin = setImmediate(done);
        else if (left > SPIN_BELOW_MS)
          timer = setTimeout(arm, Math.min(Math.floor(left - SPIN_BELOW_MS) + 1, MAX_TIMER_MS));
        else spin = setImmediate(arm);
      };
      this.#wake = done;
      if (untilMs !== Infinity) arm();
    });
  }
}

/**
 * A Node timer is late by up to about a millisecond. Spinning takes the processor, so it lasts no
 * longer.
 */
const SPIN_BELOW_MS = 1;
/** A wait is checked at least this often, since Node's timers take no more than 2^31 - 1 ms. */
const MAX_TIMER_MS = 60_000;
