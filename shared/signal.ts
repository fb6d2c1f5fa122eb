/** Wakes whoever waits when something changed. A notification cuts a wait short; it carries nothing, and is never lost or queued up. */
export class Signal {
  /** Set while somebody waits. */
  #wake: (() => void) | undefined;
  /** A notification came while nobody waited; the next wait returns at once. */
  #pending = false;

  notify(): void {
    if (this.#wake === undefined) this.#pending = true;
    else this.#wake();
  }

  /**
   * Resolves at the next notification, or at `untilMs` on `performance.now()`'s clock. One waiter at a time. Node's timers count whole
   * milliseconds and fire late, so the last stretch of a wait is spun through the event loop: a batch window must not grow by 2 ms.
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
        // Through the event loop all the same: who waits in a circle must not keep everybody else from running.
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

/** A Node timer is late by up to about a millisecond; spinning costs CPU, so no more than that. */
const SPIN_BELOW_MS = 1;
const MAX_TIMER_MS = 60_000;
