/**
 * A queue of BullMQ with the worker by which this process takes part in it. A job of such a queue
 * only names what is to be looked at. So it is tried until that has worked, and then removed.
 */
import { Queue, Worker, type ConnectionOptions, type Job } from "bullmq";
import type { Logger } from "pino";
import { QUEUE_PREFIX } from "#shared/queue/keys.js";

/**
 * A process that does not renew the lock of a job for this long has lost it. Our processors only
 * wait, so a living process renews it in time.
 */
const LOCK_MS = 5_000;
/** At this interval jobs are looked for whose process is gone. */
const STALLED_EVERY_MS = 2_500;
/** After an error of Redis a job, or the worker, tries again after this time. */
const RETRY_MS = 1_000;
/** Errors of Redis, and processes that die, end no job. */
const WITHOUT_END = 1_000_000;

export interface WorkQueueSettings<T> {
  readonly name: string;
  /** As BullMQ wants it (`connectForQueue`). */
  readonly connection: ConnectionOptions;
  /** Jobs that this process has under way at a time. */
  readonly atOnce: number;
  readonly lockMs?: number;
  readonly run: (job: Job<T>, token: string | undefined) => Promise<void>;
  readonly log: Logger;
}

export class WorkQueue<T> {
  /** A job that is added needs a `jobId`, so that it is there once, and at most a `delay`. */
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
        // Otherwise each failure of Redis would add to what is kept of the job.
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

  /** Takes no more, and waits until what is under way has ended. */
  async close(): Promise<void> {
    await this.#worker.close();
    await this.queue.close();
  }
}
