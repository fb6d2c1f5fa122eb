/**
 * Wakes a waiter when something has changed. A notification carries no data. Without a waiter, a
 * notification stays for the next wait; several count as one.
 */
import { realWorld, type World } from "./world.js";

export class Signal {
  readonly #world: World;
  /** Ends the wait; undefined without a waiter. */
  #wake: (() => void) | undefined;
  /** Whether a notification came without a waiter. The next wait then returns at once. */
  #pending = false;

  constructor(world: World = realWorld) {
    this.#world = world;
  }

  notify(): void {
    if (this.#wake === undefined) this.#pending = true;
    else this.#wake();
  }

  /**
   * Resolves at the next notification, or at `untilMs` on the world's clock. Allows one waiter at a
   * time.
   */
  wait(untilMs: number): Promise<void> {
    if (this.#pending) {
      this.#pending = false;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const done = () => {
        this.#wake = undefined;
        cancel();
        resolve();
      };
      const cancel = this.#world.at(untilMs, done);
      this.#wake = done;
    });
  }
}
