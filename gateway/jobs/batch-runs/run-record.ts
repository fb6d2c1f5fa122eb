/**
 * The record of a batch, as the run that was begun last may change it. Each change is made of the
 * very text that was read, so a run that was overtaken by another one can change nothing more.
 */
import type { Batch } from "../../batches/batch.js";
import type { Batches, ReadBatch } from "../../batches/batches.js";

const MOST_TRIES = 20;

/** Another run of the batch has begun, or the batch is gone. */
export class LostRun extends Error {
  override readonly name = "LostRun";
}

export class RunRecord {
  readonly #batches: Batches;
  #read: ReadBatch;
  /** Redis ms minus `performance.now()`. */
  readonly #clock: number;

  private constructor(batches: Batches, read: ReadBatch, now: number) {
    this.#batches = batches;
    this.#read = read;
    this.#clock = now - performance.now();
  }

  /**
   * Counts one more run in the record, which ends any other run of the batch.
   * @returns undefined where there is no such batch
   */
  static async begin(batches: Batches, tenant: string, id: string): Promise<RunRecord | undefined> {
    const now = await batches.now();
    for (let i = 0; i < MOST_TRIES; i++) {
      const found = await batches.read(tenant, id);
      if (found === undefined) return undefined;
      const begun = await batches.change(found, { ...found.batch, run: found.batch.run + 1 });
      if (begun !== undefined) return new RunRecord(batches, begun, now);
    }
    throw new Error("the batch is changed by others all the time");
  }

  /** As this run has read or changed it last. */
  get batch(): Batch {
    return this.#read.batch;
  }

  /** The time by which the batch goes, in ms since 1970: Redis's, as it was when the run began. */
  get now(): number {
    return Math.floor(performance.now() + this.#clock);
  }

  /** Whether the batch's time is over. */
  get isOver(): boolean {
    return this.now >= this.batch.expiresAt;
  }

  /**
   * Changes the record, whatever else of it somebody has changed meanwhile.
   * @throws LostRun
   */
  async change(change: (batch: Batch) => Batch): Promise<void> {
    for (let i = 0; i < MOST_TRIES; i++) {
      const found = i === 0 ? this.#read : await this.#readAgain();
      const changed = await this.#batches.change(found, change(found.batch));
      if (changed !== undefined) {
        this.#read = changed;
        return;
      }
    }
    throw new Error("the batch is changed by others all the time");
  }

  /**
   * Takes notice of a cancellation by somebody else.
   * @throws LostRun
   */
  async look(): Promise<void> {
    const { batch } = await this.#readAgain();
    // The text stays the old one, so the next change does not meet it and reads all anew.
    if (batch.status === "cancelling") this.#read = { ...this.#read, batch: { ...this.batch, status: "cancelling" } };
  }

  /** Nothing is to be done any more for a batch that has ended. */
  close(): Promise<void> {
    return this.#batches.close(this.#read);
  }

  async #readAgain(): Promise<ReadBatch> {
    const { tenant, id, run } = this.batch;
    const found = await this.#batches.read(tenant, id);
    if (found === undefined || found.batch.run !== run) throw new LostRun("another run has begun");
    return found;
  }
}
