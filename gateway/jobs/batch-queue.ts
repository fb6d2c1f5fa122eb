/**
 * Which process runs which batch, as jobs of BullMQ: one for each batch that is open. The record of
 * a batch is the truth. All open ones are looked through at an interval, and one whose job is gone
 * gets another; two runs of one batch do no harm, since the later one ends the earlier.
 */
import { DelayedError, type ConnectionOptions, type Job, type Queue } from "bullmq";
import type { Logger } from "pino";
import { openBatches, type OpenBatch } from "#shared/queue/batches/batches.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { Slots } from "./slots.js";
import { Shares } from "./batch-runs/shares.js";
import { BatchRun, type RunSettings } from "./batch-runs/batch-run.js";
import { LostRun } from "./batch-runs/run-record.js";
import { WorkQueue } from "./work-queue.js";

export interface BatchQueueSettings extends Omit<RunSettings, "lines" | "held" | "validations" | "mostLines"> {
  readonly redis: RedisClient;
  /** As BullMQ wants it (`connectForQueue`). */
  readonly connection: ConnectionOptions;
  /** Requests of a model that may wait or run. */
  readonly queueLimit: number;
  readonly log: Logger;
}

const QUEUE = "batches";
/** Batches that a process runs at a time: of all, and of a tenant. */
const AT_ONCE = { all: 32, tenant: 4 };
/** Lines under way in a process, however many workers there are: each has a promise and a body. */
const MOST_LINES = 512;
/** Of what a model may have in the queue, what is left is for those whose clients wait. */
const SHARE = 0.9;
/** A process that does not renew the lock of a batch for this long has lost it. */
const LOCK_MS = 10_000;
/** Jobs that one call to BullMQ adds. */
const AT_A_CALL = 500;
/** A new batch is noticed so soon. */
const LOOK_EVERY_MS = 1_000;
/** After this time a batch whose job is gone gets another one. */
const ADD_EVERY_MS = 5_000;
/**
 * How long a batch is believed to take, in ms. So of a tenant's batches that wait for a slot, about
 * one a second looks again. Most take longer; but another process may have a slot free meanwhile,
 * and this one does not hear of it.
 */
const USUAL_MS = 4_000;

export class BatchQueue {
  readonly #settings: RunSettings;
  readonly #work: WorkQueue<OpenBatch>;
  readonly #slots = new Slots(AT_ONCE.tenant, { usualMs: USUAL_MS });
  readonly #closing = new AbortController();
  readonly #looking: Promise<void>;
  /** When this process has last added each job, on `performance.now()`'s clock. */
  #added = new Map<string, number>();
  /** Batches whose last run here has failed, so that each tells of it once. */
  readonly #failing = new Set<string>();

  constructor(settings: BatchQueueSettings) {
    const { connection, log } = settings;
    const mostLines = Math.max(1, Math.min(MOST_LINES, Math.floor(SHARE * settings.queueLimit)));
    this.#settings = {
      ...settings,
      mostLines,
      lines: new Shares(mostLines),
      held: { bytes: 0 },
      validations: new Shares(1),
    };
    this.#work = new WorkQueue({
      name: QUEUE,
      connection,
      atOnce: AT_ONCE.all,
      lockMs: LOCK_MS,
      run: (job, token) => this.#run(job, token),
      log,
    });
    this.#looking = this.#look();
  }

  /** For people who look. */
  get queue(): Queue {
    return this.#work.queue;
  }

  whenReady(): Promise<unknown> {
    return this.#work.whenReady();
  }

  /** Begins no further line, keeps what has ended, and leaves the rest to other processes. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#looking;
    await this.#work.close();
  }

  async #look(): Promise<void> {
    const { redis, log } = this.#settings;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        if (redis.status === "ready") await this.#addAll(await openBatches(redis));
      } catch (error) {
        log.debug({ error: String(error) }, "open batches cannot be looked through now");
      }
      await delay(LOOK_EVERY_MS, signal);
    }
  }

  async #addAll(open: readonly OpenBatch[]): Promise<void> {
    const now = performance.now();
    const before = this.#added;
    this.#added = new Map(open.map(({ id }) => [id, before.get(id) ?? -Infinity]));
    for (const id of this.#failing) if (!this.#added.has(id)) this.#failing.delete(id);
    const due = open.filter(({ id }) => now - (this.#added.get(id) ?? 0) >= ADD_EVERY_MS);
    for (let from = 0; from < due.length; from += AT_A_CALL) {
      const part = due.slice(from, from + AT_A_CALL);
      // A job that is there is not added a second time.
      await this.#work.queue.addBulk(part.map((data) => ({ name: "run", data, opts: { jobId: data.id } })));
      for (const { id } of part) this.#added.set(id, now);
    }
  }

  async #run(job: Job<OpenBatch>, token: string | undefined): Promise<void> {
    const { log } = this.#settings;
    const { tenant, id } = job.data;
    const { signal } = this.#closing;
    const waitMs = this.#slots.take(tenant, performance.now(), id);
    if (waitMs !== undefined) return this.#postpone(job, token, waitMs);
    try {
      const run = await BatchRun.begin(this.#settings, tenant, id);
      await run?.run(signal);
      this.#failing.delete(id);
    } catch (error) {
      if (error instanceof LostRun) return;
      const level = this.#failing.has(id) ? "debug" : "warn";
      this.#failing.add(id);
      log[level]({ batch: id, error: String(error) }, "a batch cannot go on now; it is tried again");
      throw error;
    } finally {
      for (let calls = this.#slots.release(tenant, performance.now()); calls > 0; calls--) void this.#callNext(tenant);
    }
    if (signal.aborted) await this.#postpone(job, token, 0);
  }

  /** A batch that waits for a slot need not wait for as long as it was told. */
  async #callNext(tenant: string): Promise<void> {
    const id = this.#slots.next(tenant);
    if (id === undefined) return;
    try {
      const job = await this.#work.queue.getJob(id);
      await job?.promote();
    } catch {
      // It has come by itself, or will.
    }
  }

  async #postpone(job: Job<OpenBatch>, token: string | undefined, inMs: number): Promise<never> {
    await job.moveToDelayed(Date.now() + inMs, token);
    throw new DelayedError();
  }
}
