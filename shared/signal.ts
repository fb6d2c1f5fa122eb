/**
 * Wakes one waiter when something has changed. A notification carries nothing. One that nobody
 * waits for is kept for the next wait; several count as one.
 */
import { realWorld, type World } from "./world.js";

export class Signal {
  readonly #world: World;
  /** Ends the wait; undefined while nobody waits. */
  #wake: (() => void) | undefined;
  /** Whether a notification came while nobody waited: the next wait then returns at once. */
  #pending = false;

  constructor(world: World = realWorld) {
    this.#world = world;
  }

  notify(): void {
    if (this.#wake === undefined) this.#pending = true;
    else this.#wake();
  }

  /**
   * Resolves at the next notification, or at `untilMs` on the world's clock. There may be one
   * waiter at a time.
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
