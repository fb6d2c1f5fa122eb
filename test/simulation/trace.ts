/**
 * The events of a run, in order. A digest of all events tells whether two runs of the same seed are
 * equal. The trace keeps the last lines for the report of a failed run.
 */
import { createHash } from "node:crypto";

/** How many lines the trace keeps at least. */
const KEPT = 100_000;

export class Trace {
  readonly #digest = createHash("sha256");
  readonly #now: () => number;
  #lines: string[] = [];
  #count = 0;

  /** @param now simulated ms */
  constructor(now: () => number) {
    this.#now = now;
  }

  note(who: string, what: string): void {
    const line = `${this.#now().toFixed(3)} ${who} ${what}`;
    this.#digest.update(line).update("\n");
    this.#count++;
    this.#lines.push(line);
    if (this.#lines.length > 2 * KEPT) this.#lines = this.#lines.slice(-KEPT);
  }

  /** The last lines with any of these words, or all of the last lines. */
  last(count = Infinity, words: readonly string[] = []): string[] {
    const found =
      words.length === 0 ? this.#lines : this.#lines.filter((line) => words.some((one) => line.includes(one)));
    return count === Infinity ? found : found.slice(-count);
  }

  /** Ends the trace. */
  digest(): string {
    return `${this.#count} ${this.#digest.digest("hex")}`;
  }
}
