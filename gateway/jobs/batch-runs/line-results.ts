/**
 * What the lines of one run have given, and how it comes to count: it is written to the store in
 * pieces, then the record says how far the batch is, and only then what Redis knows of those lines
 * is forgotten. A run that ends between two of these steps leaves lines that are asked again under
 * their own keys.
 */
import { advanced } from "../../batches/batch.js";
import type { Line } from "../../batches/json-lines.js";
import { Progress } from "../../batches/progress.js";
import type { Kept } from "./kept.js";
import type { LineInference } from "./line-inference.js";
import type { RunRecord } from "./run-record.js";

/** What one line has given. */
export interface LineResult {
  readonly number: number;
  /** As it stands in a file. */
  readonly text: Buffer;
  /** Whether that is the file of outputs, not of errors. */
  readonly isGood: boolean;
  /** The key under which the line was asked; undefined where it was not. */
  readonly key?: string;
}

export class LineResults {
  readonly #record: RunRecord;
  readonly #kept: Kept;
  readonly #inference: LineInference;
  readonly #progress: Progress;
  /** Keys of the lines that were asked and whose answers are not kept. */
  readonly #asked = new Set<string>();

  constructor(record: RunRecord, kept: Kept, inference: LineInference) {
    this.#record = record;
    this.#kept = kept;
    this.#inference = inference;
    this.#progress = new Progress(record.batch.checkpoint);
  }

  /** From where on the file is to be read. */
  get from() {
    const { offset, line } = this.#progress.checkpoint();
    return { offset, line };
  }

  /** How many lines were read from the first that is not done on. */
  get window(): number {
    return this.#progress.window;
  }

  /** Whether so much waits to be written that no further line is to be begun. */
  get isFull(): boolean {
    return this.#kept.isFull;
  }

  /** Whether so much waits that it is written at once. */
  get isLarge(): boolean {
    return this.#kept.isLarge;
  }

  /** Whether it is time to write what waits. */
  get isDue(): boolean {
    return this.#kept.isDue(performance.now());
  }

  /** @returns whether the line, which was read just now, is still to be done */
  read(line: Line): boolean {
    return this.#progress.read(line);
  }

  /** Notes that a line is asked under this key. */
  asking(key: string): void {
    this.#asked.add(key);
    this.#inference.begin(key);
  }

  note({ number, text, isGood, key }: LineResult): void {
    this.#kept.add(text, isGood, key);
    this.#progress.done(number);
  }

  /**
   * Writes what waits, and then how far the batch is.
   * @throws LostRun, InferenceError
   */
  async keep(): Promise<void> {
    const taken = this.#kept.take();
    if (taken === undefined) return;
    const checkpoint = this.#progress.checkpoint();
    const { completed, failed, bytes } = taken;
    const { output, errors } = await this.#kept.write(this.#record.batch, taken);
    await this.#record.change((one) => advanced(one, { checkpoint, completed, failed, output, errors, bytes }));
    for (const key of taken.keys) {
      this.#inference.release(key);
      this.#asked.delete(key);
    }
  }

  /** The run is over. What another one asks again is found under its key. */
  leave(): void {
    for (const key of this.#asked) this.#inference.forget(key);
  }
}
