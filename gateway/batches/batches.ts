/** Makes, reads, lists and changes a tenant's batches in Redis. */
import { fixedError, InferenceError } from "#shared/errors.js";
import { listBatches, placeOfBatch, readBatch } from "#shared/queue/batches/batches.js";
import { batchKeys } from "#shared/queue/keys.js";
import { writeBatch, type BatchLimits } from "#shared/queue/batches/write-batch.js";
import { timeAt } from "#shared/redis/clock.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { batchText, hasEnded, parseBatch, type Batch } from "./batch.js";

const limits: BatchLimits = { keptMs: 30 * 86_400_000, open: 200, known: 10_000 };

/** A batch, and its text in Redis. A change takes effect only if Redis still has this text. */
export interface ReadBatch {
  readonly batch: Batch;
  readonly text: string;
}

export class Batches {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** Redis's time, in ms since 1970, by which batches expire. */
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

  /** @returns undefined if the tenant has no such batch */
  async read(tenant: string, id: string): Promise<ReadBatch | undefined> {
    const text = await readBatch(this.#redis, tenant, id);
    return text === undefined ? undefined : { batch: parseBatch(text), text };
  }

  /**
   * A page, newest first.
   * @returns undefined if `after` is not a batch of the tenant
   */
  async list(tenant: string, after: string | undefined, count: number): Promise<Batch[] | undefined> {
    const place = after === undefined ? -1 : await placeOfBatch(this.#redis, tenant, after);
    if (place === undefined) return undefined;
    const ids = await listBatches(this.#redis, tenant, place + 1, count);
    const found = await Promise.all(ids.map((id) => this.read(tenant, id)));
    return found.flatMap((one) => (one === undefined ? [] : [one.batch]));
  }

  /**
   * @param isOpen whether the batch still has work to do
   * @returns the batch as it is now; undefined if another change came first
   */
  async change({ text }: ReadBatch, to: Batch, isOpen = true): Promise<ReadBatch | undefined> {
    const said = await this.#write(to, text, isOpen);
    return said === "written" ? { batch: to, text: batchText(to) } : undefined;
  }

  /** Removes a batch that has ended from the open batches. */
  async close(read: ReadBatch): Promise<void> {
    if (hasEnded(read.batch)) await this.change(read, read.batch, false);
  }

  #write(batch: Batch, from: string | undefined, isOpen = true) {
    const { tenant, id } = batch;
    return writeBatch(this.#redis, { tenant, id, from, to: batchText(batch), isOpen }, limits);
  }
}
