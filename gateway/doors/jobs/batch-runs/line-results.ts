/**
 * Stores the results of the lines of one run. First the run writes the results to the store in
 * pieces, then the record says how far the batch is, and only then Redis forgets the outcomes of
 * these lines. If a run ends between two steps, the next run sends the lines again under their own
 * keys.
 */
import { advanced } from "../../../batches/batch.js";
import type { Line } from "../../../batches/json-lines.js";
import { Progress } from "../../../batches/progress.js";
import { countLines } from "./counts.js";
import type { Kept } from "./kept.js";
import type { LineInference } from "./line-inference.js";
import type { RunRecord } from "./run-record.js";

/** The result of one line. */
export interface LineResult {
  readonly number: number;
  /** The line as it stands in a file. */
  readonly text: Buffer;
  /** Whether the line goes to the file of outputs; otherwise to the file of errors. */
  readonly isGood: boolean;
  /** The key of the line's request; absent if the run has sent none. */
  readonly key?: string;
}

export class LineResults {
  readonly #record: RunRecord;
  readonly #kept: Kept;
  readonly #inference: LineInference;
  readonly #progress: Progress;
  /** Keys of lines that the run has sent, and whose answers are not stored. */
  readonly #asked = new Set<string>();

  constructor(record: RunRecord, kept: Kept, inference: LineInference) {
    this.#record = record;
    this.#kept = kept;
    this.#inference = inference;
    this.#progress = new Progress(record.batch.checkpoint);
  }

  /** The place in the file at which the run begins. */
  get from() {
    const { offset, line } = this.#progress.checkpoint();
    return { offset, line };
  }

  /** How many lines the run has read, from the first line that is not done. */
  get window(): number {
    return this.#progress.window;
  }

  /** Whether too much waits to be written for a further line to begin. */
  get isFull(): boolean {
    return this.#kept.isFull;
  }

  /** Whether enough waits to be written at once. */
  get isLarge(): boolean {
    return this.#kept.isLarge;
  }

  /** Whether it is time to write the waiting results. */
  get isDue(): boolean {
    return this.#kept.isDue(performance.now());
  }

  /** @returns whether the line, which the run has just read, still has to run */
  read(line: Line): boolean {
    return this.#progress.read(line);
  }

  /** Notes that the run sends a line under this key. */
  asking(key: string): void {
    this.#asked.add(key);
    this.#inference.begin(key, this.#record.batch.trace);
  }

  note({ number, text, isGood, key }: LineResult): void {
    this.#kept.add(text, isGood, key);
    this.#progress.done(number);
  }

  /**
   * Writes the waiting results, and then how far the batch is.
   * @throws LostRun, InferenceError
   */
  async keep(): Promise<void> {
    const taken = this.#kept.take();
    if (taken === undefined) return;
    const checkpoint = this.#progress.checkpoint();
    const { completed, failed, bytes } = taken;
    const { output, errors } = await this.#kept.write(this.#record.batch, taken);
    await this.#record.change((one) => advanced(one, { checkpoint, completed, failed, output, errors, bytes }));
    countLines(completed, failed);
    for (const key of taken.keys) {
      this.#inference.release(key);
      this.#asked.delete(key);
    }
  }

  /** Ends the run. The next run finds the outcomes of its unfinished lines under their keys. */
  leave(): void {
    for (const key of this.#asked) this.#inference.forget(key);
  }
}
