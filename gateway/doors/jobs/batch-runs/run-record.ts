/**
 * The record of a batch, which only the newest run may change. Each change compares the whole text
 * that the run has read, so a run that a newer run has overtaken can change nothing.
 */
import type { Batch } from "../../../batches/batch.js";
import type { Batches, ReadBatch } from "../../../batches/batches.js";

const MOST_TRIES = 20;

/** Thrown if another run of the batch has begun, or if the batch is gone. */
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
   * @returns undefined if there is no such batch
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

  /** The batch as this run has last read or changed it. */
  get batch(): Batch {
    return this.#read.batch;
  }

  /** The batch's clock, in ms since 1970: Redis's clock, read at the start of the run. */
  get now(): number {
    return Math.floor(performance.now() + this.#clock);
  }

  /** Whether the batch's time is over. */
  get isOver(): boolean {
    return this.now >= this.batch.expiresAt;
  }

  /**
   * Changes the record, even if another process has changed it meanwhile.
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
   * Notices if another process has cancelled the batch.
   * @throws LostRun
   */
  async look(): Promise<void> {
    const { batch } = await this.#readAgain();
    // Keeps the old text, so the next change fails at first and reads the whole record again.
    if (batch.status === "cancelling") this.#read = { ...this.#read, batch: { ...this.batch, status: "cancelling" } };
  }

  /** Closes a batch that has ended, so that no process runs it again. */
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
