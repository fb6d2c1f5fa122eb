/** The times of a sampled stream at this worker, from its entry into the engine to its end. */
import type { Phase } from "./step-trace.js";

export class StreamTrace {
  readonly startAt = performance.now();
  /** When the engine gave its first and its last record here. */
  #firstAt: number | undefined;
  #lastAt = 0;
  #tokens = 0;

  /** Notes a record of the engine. */
  heard(now: number, tokens: number): void {
    this.#firstAt ??= now;
    this.#lastAt = now;
    this.#tokens += tokens;
  }

  /** The phases so far. The stream has no record yet if there is no decoding. */
  phases(): Phase[] {
    const first = this.#firstAt;
    if (first === undefined) return [];
    return [
      { name: "prefill", startAt: this.startAt, endAt: first, attributes: {} },
      { name: "decode", startAt: first, endAt: this.#lastAt, attributes: { "baton.tokens": this.#tokens } },
    ];
  }
}
