/**
 * Redis's clock as this process sees it. Deadlines are set and compared in Redis time alone, so no two hosts' clocks are ever compared; between readings only the
 * monotonic clock moves it on.
 */
export class RedisClock {
  /** Redis ms minus `performance.now()`; undefined until the first reading. */
  #offset: number | undefined;

  observe(redisMs: number): void {
    this.#offset = redisMs - performance.now();
  }

  /** A Redis time on `performance.now()`'s clock; never, while Redis's clock is not known. */
  toLocal(redisMs: number): number {
    return this.#offset === undefined ? Infinity : redisMs - this.#offset;
  }

  /** A time on `performance.now()`'s clock in Redis ms, early by up to a reply's way; long past, while Redis's clock is not known. */
  toRedis(localMs: number): number {
    return this.#offset === undefined ? 0 : localMs + this.#offset;
  }
}
