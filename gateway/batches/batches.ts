/** A tenant's batches in Redis: made, read, listed and changed. */
import { fixedError, InferenceError } from "#shared/errors.js";
import { listBatches, placeOfBatch, readBatch } from "#shared/queue/batches/batches.js";
import { batchKeys } from "#shared/queue/keys.js";
import { writeBatch, type BatchLimits } from "#shared/queue/batches/write-batch.js";
import { timeAt } from "#shared/redis/clock.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { batchText, cancelled, hasEnded, parseBatch, type Batch } from "./batch.js";

const limits: BatchLimits = { keptMs: 30 * 86_400_000, open: 200, known: 10_000 };
/** A change that others overtake is made again so often. */
const MOST_TRIES = 10;

/** A batch, and the text that it was read from: what a change is made of. */
export interface ReadBatch {
  readonly batch: Batch;
  readonly text: string;
}

export class Batches {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** The time by which batches go, in ms since 1970: Redis's. */
  async now(): Promise<number> {
    return Math.floor(await timeAt(this.#redis, batchKeys.openOfAll));
  }

  /**
   * @returns the batch, and whether an earlier call has made it
   * @throws InferenceError `batch_limit`, `idempotency_mismatch`
   */
  async make(batch: Batch): Promise<{ readonly batch: Batch; readonly isReplayed: boolean }> {
    const said = await this.#write(batch, undefined);
    if (said === "written") return { batch, isReplayed: false };
    if (said === "full") {
      const why = `there are ${limits.open} batches that have not ended, and no more are allowed`;
      throw new InferenceError("batch_limit", why);
    }
    const there = await this.read(batch.tenant, batch.id);
    if (there === undefined) throw fixedError("outcome_unknown", "change");
    if (there.batch.digest !== batch.digest) throw fixedError("idempotency_mismatch", "usual");
    return { batch: there.batch, isReplayed: true };
  }

  /** @returns undefined where the tenant has no such batch */
  async read(tenant: string, id: string): Promise<ReadBatch | undefined> {
    const text = await readBatch(this.#redis, tenant, id);
    return text === undefined ? undefined : { batch: parseBatch(text), text };
  }

  /**
   * A page, newest first.
   * @returns undefined where `after` is none of the tenant's batches
   */
  async list(tenant: string, after: string | undefined, count: number): Promise<Batch[] | undefined> {
    const place = after === undefined ? -1 : await placeOfBatch(this.#redis, tenant, after);
    if (place === undefined) return undefined;
    const ids = await listBatches(this.#redis, tenant, place + 1, count);
    const found = await Promise.all(ids.map((id) => this.read(tenant, id)));
    return found.flatMap((one) => (one === undefined ? [] : [one.batch]));
  }

  /**
   * @returns as it is now
   * @throws InferenceError `unknown_batch`, `already_ended`
   */
  async cancel(tenant: string, id: string): Promise<Batch> {
    const now = await this.now();
    for (let i = 0; i < MOST_TRIES; i++) {
      const found = await this.read(tenant, id);
      if (found === undefined) throw fixedError("unknown_batch", "usual");
      const to = cancelled(found.batch, now);
      if (to === undefined) throw new InferenceError("already_ended", `the batch is ${found.batch.status}`);
      if (to === found.batch || (await this.change(found, to)) !== undefined) return to;
    }
    throw fixedError("outcome_unknown", "change");
  }

  /**
   * @param isOpen whether something is still to be done for it
   * @returns as it is now; undefined where somebody was faster
   */
  async change({ text }: ReadBatch, to: Batch, isOpen = true): Promise<ReadBatch | undefined> {
    const said = await this.#write(to, text, isOpen);
    return said === "written" ? { batch: to, text: batchText(to) } : undefined;
  }

  /** Nothing is to be done any more for a batch that has ended. */
  async close(read: ReadBatch): Promise<void> {
    if (hasEnded(read.batch)) await this.change(read, read.batch, false);
  }

  #write(batch: Batch, from: string | undefined, isOpen = true) {
    const { tenant, id } = batch;
    return writeBatch(this.#redis, { tenant, id, from, to: batchText(batch), isOpen }, limits);
  }
}
