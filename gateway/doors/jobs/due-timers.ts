/**
 * Timers of jobs that wait for their time, as delayed BullMQ jobs: one for each run of a job. A
 * timer only says when to look. The job's record says that the job is due, and ensures that a
 * process queues the job once. So a lost timer, or a timer that fires twice, does no harm. The
 * processor computes nothing: it queues the job and returns.
 */
import { DelayedError, type ConnectionOptions, type Job, type Queue } from "bullmq";
import type { Logger } from "pino";
import { parseRequestName, requestName } from "#shared/queue/address.js";
import { overdueJobs } from "#shared/queue/jobs/overdue.js";
import { readDue } from "#shared/queue/jobs/read-due.js";
import type { DueJob } from "#shared/queue/pieces/later.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import type { RunDue } from "../../jobs/due.js";
import { encodeJobId } from "../../jobs/view.js";
import { WorkQueue } from "./work-queue.js";

export interface DueTimersSettings {
  readonly redis: RedisClient;
  readonly buckets: number;
  /** From `connectForQueue`. */
  readonly connection: ConnectionOptions;
  readonly run: RunDue;
  readonly log: Logger;
}

/** The data of a timer: the address of the job, in short. */
interface Timer {
  readonly bucket: number;
  readonly model: string;
  readonly name: string;
}

const QUEUE = "due";
/** Jobs that a process queues at a time. */
const AT_ONCE = 64;
/** Interval at which the process looks for jobs whose due time has passed, in ms. */
const LOOK_EVERY_MS = 5_000;
/** Pause before the next look, in ms, if a look was full. */
const LOOK_ON_MS = 1_000;
/** A job that is later than this, in ms, counts as a job without a timer. */
const LATE_MS = 2_000;
/** Most jobs of one look at one key. */
const PAGE = 500;

export class DueTimers {
  readonly #settings: DueTimersSettings;
  readonly #work: WorkQueue<Timer>;

  constructor(settings: DueTimersSettings) {
    const { connection, log } = settings;
    this.#settings = settings;
    this.#work = new WorkQueue({
      name: QUEUE,
      connection,
      atOnce: AT_ONCE,
      run: (job, token) => this.#fire(job, token),
      log,
    });
  }

  /** For Bull Board. */
  get queue(): Queue {
    return this.#work.queue;
  }

  whenReady(): Promise<unknown> {
    return this.#work.whenReady();
  }

  /**
   * Sets the timer of a job that waits, unless it is set. Removes the timer of a job that does not
   * wait.
   */
  async set(due: DueJob): Promise<void> {
    const inMs = await readDue(this.#settings.redis, due);
    if (inMs === undefined) {
      // A timer that fires now finds nothing to do.
      await this.#work.queue.remove(nameOf(due));
      return;
    }
    const { bucket, model, ...request } = due.job;
    const timer = { bucket, model, name: requestName(request) };
    await this.#work.queue.add("queue", timer, {
      jobId: nameOf(due),
      delay: Math.max(inMs, 0),
    });
  }

  /** Looks regularly for jobs whose timers are lost, until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    const { redis, buckets, log } = this.#settings;
    for (let restMs = LOOK_EVERY_MS; !signal.aborted;) {
      await delay(restMs * (0.8 + Math.random() * 0.4), signal);
      restMs = LOOK_EVERY_MS;
      if (signal.aborted || redis.status !== "ready") continue;
      try {
        const overdue = await overdueJobs(redis, buckets, LATE_MS, PAGE);
        await Promise.all(overdue.map((due) => this.set(due)));
        if (overdue.length >= PAGE) restMs = LOOK_ON_MS;
      } catch (error) {
        log.debug({ error: String(error) }, "overdue jobs cannot be looked for now");
      }
    }
  }

  /** Takes no further timer, and waits until the running timers have ended. */
  async close(): Promise<void> {
    await this.#work.close();
  }

  async #fire(timer: Job<Timer>, token: string | undefined): Promise<void> {
    const { bucket, model, name } = timer.data;
    const againInMs = await this.#settings.run({ bucket, model, ...parseRequestName(name) });
    if (againInMs === undefined) return;
    await timer.moveToDelayed(Date.now() + againInMs, token);
    throw new DelayedError();
  }
}

function nameOf({ job, run }: DueJob): string {
  return `${encodeJobId(job)}.${run}`;
}
