/**
 * A BullMQ queue with the worker of this process. A job in such a queue only names a record to look
 * at. So BullMQ tries the job until it succeeds, and then removes the job.
 */
import { Queue, Worker, type ConnectionOptions, type Job } from "bullmq";
import type { Logger } from "pino";
import { QUEUE_PREFIX } from "#shared/queue/keys.js";

/**
 * A process that does not renew the lock of a job for this long loses the job. Our processors only
 * wait, so a living process renews the lock in time.
 */
const LOCK_MS = 5_000;
/** Interval at which BullMQ looks for jobs whose process is gone, in ms. */
const STALLED_EVERY_MS = 2_500;
/** Pause before a job, or the worker, tries again after an error of Redis, in ms. */
const RETRY_MS = 1_000;
/** Most attempts and stalls of a job: neither errors of Redis nor dead processes end a job. */
const WITHOUT_END = 1_000_000;

export interface WorkQueueSettings<T> {
  readonly name: string;
  /** From `connectForQueue`. */
  readonly connection: ConnectionOptions;
  /** Jobs that this process runs at a time. */
  readonly atOnce: number;
  readonly lockMs?: number;
  readonly run: (job: Job<T>, token: string | undefined) => Promise<void>;
  readonly log: Logger;
}

export class WorkQueue<T> {
  /**
   * Every added job needs a `jobId`, so that the queue has the job once. A `delay` is allowed, no
   * other option.
   */
  readonly queue: Queue<T>;
  readonly #worker: Worker<T>;

  constructor({ name, connection, atOnce, lockMs = LOCK_MS, run, log }: WorkQueueSettings<T>) {
    this.queue = new Queue<T>(name, {
      connection,
      prefix: QUEUE_PREFIX,
      skipMetasUpdate: true,
      defaultJobOptions: {
        attempts: WITHOUT_END,
        backoff: { type: "fixed", delay: RETRY_MS },
        removeOnComplete: true,
        removeOnFail: true,
        // Otherwise each failure of Redis adds a stack trace to the job.
        stackTraceLimit: 1,
      },
    });
    this.#worker = new Worker<T>(name, run, {
      connection,
      prefix: QUEUE_PREFIX,
      concurrency: atOnce,
      lockDuration: lockMs,
      stalledInterval: STALLED_EVERY_MS,
      maxStalledCount: WITHOUT_END,
      runRetryDelay: RETRY_MS,
    });
    const onError = (error: Error) => log.debug({ queue: name, error: error.message }, "a queue has an error");
    this.queue.on("error", onError);
    this.#worker.on("error", onError);
    this.#worker.on("stalled", (id) => log.warn({ queue: name, job: id }, "a job is taken over: its process is gone"));
  }

  whenReady(): Promise<unknown> {
    return Promise.all([this.queue.waitUntilReady(), this.#worker.waitUntilReady()]);
  }

  /** Takes no further job, and waits until the running jobs have ended. */
  async close(): Promise<void> {
    await this.#worker.close();
    await this.queue.close();
  }
}
