/**
 * Chooses which process runs which batch, with one BullMQ job for each open batch. The record of a
 * batch is the truth. Each process regularly reads all open batches, and adds a new job for a batch
 * whose job is lost. Two runs of one batch do no harm, because the later run ends the earlier.
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
  /** From `connectForQueue`. */
  readonly connection: ConnectionOptions;
  /** Most requests of a model that may wait or run. */
  readonly queueLimit: number;
  readonly log: Logger;
}

const QUEUE = "batches";
/** Batches that a process runs at a time: in all, and of one tenant. */
const AT_ONCE = { all: 32, tenant: 4 };
/**
 * Most lines under way in a process with any number of workers, because each line has a promise and
 * a body.
 */
const MOST_LINES = 512;
/** Share of a model's queue that lines may fill. The rest is for requests whose clients wait. */
const SHARE = 0.9;
/** A process that does not renew the lock of a batch for this long loses the batch. */
const LOCK_MS = 10_000;
/** Jobs that one call adds to BullMQ. */
const AT_A_CALL = 500;
/** A process notices a new batch within this time. */
const LOOK_EVERY_MS = 1_000;
/**
 * A process adds the job of an open batch again after this time, in case BullMQ has lost the job.
 */
const ADD_EVERY_MS = 5_000;
/**
 * The estimated time of a batch, in ms. With this estimate, about one waiting batch of a tenant
 * looks for a slot each second. Most batches take longer. But another process may have a free slot
 * meanwhile, and this process does not learn that.
 */
const USUAL_MS = 4_000;

export class BatchQueue {
  readonly #settings: RunSettings;
  readonly #work: WorkQueue<OpenBatch>;
  readonly #slots = new Slots(AT_ONCE.tenant, { usualMs: USUAL_MS });
  readonly #closing = new AbortController();
  readonly #looking: Promise<void>;
  /** When this process last added each job, by `performance.now()`. */
  #added = new Map<string, number>();
  /** Batches whose last run here has failed, so that the process warns of each batch once. */
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

  /** For Bull Board. */
  get queue(): Queue {
    return this.#work.queue;
  }

  whenReady(): Promise<unknown> {
    return this.#work.whenReady();
  }

  /** Begins no further line, stores the ended lines, and leaves the rest to other processes. */
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
      // BullMQ ignores a job that it has already.
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

  /** Lets the next waiting batch try now, before its time. */
  async #callNext(tenant: string): Promise<void> {
    const id = this.#slots.next(tenant);
    if (id === undefined) return;
    try {
      const job = await this.#work.queue.getJob(id);
      await job?.promote();
    } catch {
      // The job has started at its time, or will.
    }
  }

  async #postpone(job: Job<OpenBatch>, token: string | undefined, inMs: number): Promise<never> {
    await job.moveToDelayed(Date.now() + inMs, token);
    throw new DelayedError();
  }
}
