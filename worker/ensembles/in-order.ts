/** Takes items one after the other, while further items come. */
import { Signal } from "#shared/signal.js";

export class InOrder<T> {
  readonly #take: (item: T) => Promise<void>;
  readonly #left = new Signal();
  #taking: Promise<void> = Promise.resolve();
  #waiting = 0;

  /** @param take takes no further item after one that it has failed for */
  constructor(take: (item: T) => Promise<void>) {
    this.#take = take;
  }

  add(item: T): void {
    this.#waiting++;
    this.#taking = this.#next(this.#taking, item);
    // `all` tells of the failure.
    this.#taking.catch(() => undefined);
  }

  /** Resolves when fewer items than this wait. */
  async room(most: number): Promise<void> {
    while (this.#waiting >= most) await this.#left.wait(Infinity);
  }

  /** @throws the first failure */
  all(): Promise<void> {
    return this.#taking;
  }

  async #next(before: Promise<void>, item: T): Promise<void> {
    try {
      await before;
      await this.#take(item);
    } finally {
      this.#waiting--;
      this.#left.notify();
    }
  }
}
