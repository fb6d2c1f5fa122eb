/** Makes, reads, lists and changes a tenant's batches in Redis. */
import { fixedError, InferenceError } from "#shared/errors.js";
import { listBatches, placeOfBatch, readBatch } from "#shared/queue/batches/batches.js";
import { batchKeys } from "#shared/queue/keys.js";
import { writeBatch, type BatchLimits } from "#shared/queue/batches/write-batch.js";
import { timeAt } from "#shared/redis/clock.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { askRedis, changeInRedis } from "../admission/ask-redis.js";
import { tooManyOf, type RequestBudget } from "../admission/budget.js";
import { batchText, hasEnded, parseBatch, type Batch } from "./batch.js";

const limits: BatchLimits = { keptMs: 30 * 86_400_000, open: 200, known: 10_000 };

/** A batch, and its text in Redis. A change takes effect only if Redis still has this text. */
export interface ReadBatch {
  readonly batch: Batch;
  readonly text: string;
}

export class Batches {
  readonly #redis: RedisClient;
  readonly #buckets: number;

  /** @param buckets of the deployment */
  constructor(redis: RedisClient, buckets: number) {
    this.#redis = redis;
    this.#buckets = buckets;
  }

  /** Redis's time, in ms since 1970, by which batches expire. */
  async now(): Promise<number> {
    return Math.floor(await timeAt(this.#redis, batchKeys.openOfAll));
  }

  /**
   * Makes a batch, which counts in the rates of requests of its client as a single request. In a
   * Redis Cluster batches lie beside all buckets, and have a bucket's share of the rates.
   * @param budget of the client; undefined if it has no limits
   * @returns the batch, and whether an earlier call has made it
   * @throws InferenceError `batch_limit`, `rate_limit_exceeded`, `idempotency_mismatch`,
   * `outcome_unknown` or `unavailable`
   */
  async make(
    batch: Batch,
    budget: RequestBudget | undefined,
  ): Promise<{ readonly batch: Batch; readonly isReplayed: boolean }> {
    const { tenant, id } = batch;
    const rates = budget?.ratesIn({ redis: this.#redis, buckets: this.#buckets }, 0);
    const change = { tenant, id, from: undefined, to: batchText(batch), open: batch.status, rates };
    const open = budget?.counts?.batches ?? limits.open;
    let copies = 0;
    const made = await changeInRedis(() => writeBatch(this.#redis, change, { ...limits, open }, copies++ > 0));
    if (made.said === "too-soon") {
      if (budget === undefined) throw new TypeError("a client without a budget cannot make a batch too soon");
      throw budget.refused(made.name, made.waitUs);
    }
    if (made.said === "full") {
      const why = `there are ${open} batches that have not ended, and no more are allowed`;
      throw new InferenceError("batch_limit", why, tooManyOf("batches"));
    }
    budget?.admitted(made.rates);
    if (made.said === "written") return { batch, isReplayed: false };
    const there = await askRedis(() => this.read(tenant, id));
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
    const { tenant, id } = to;
    const change = { tenant, id, from: text, to: batchText(to), open: isOpen ? to.status : undefined };
    const { said } = await writeBatch(this.#redis, change, limits);
    return said === "written" ? { batch: to, text: change.to } : undefined;
  }

  /** Removes a batch that has ended from the open batches. */
  async close(read: ReadBatch): Promise<void> {
    if (hasEnded(read.batch)) await this.change(read, read.batch, false);
  }
}
