/**
 * Timers of jobs that are to be queued later, as delayed jobs of BullMQ: one for each run of a job.
 * They only say when to look. That a job is due, and that it is queued once, is known where its
 * record is; a timer that is lost, or that fires twice, does no harm. Its processor computes
 * nothing: it queues the job and returns.
 */
import { DelayedError, type ConnectionOptions, type Job, type Queue } from "bullmq";
import type { Logger } from "pino";
import { parseRequestName, requestName } from "#shared/queue/address.js";
import { overdueJobs } from "#shared/queue/jobs/overdue.js";
import { readDue } from "#shared/queue/jobs/read-due.js";
import type { DueJob } from "#shared/queue/later.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import type { RunDue } from "../job-paths/due.js";
import { encodeJobId } from "../job-paths/view.js";
import { WorkQueue } from "./work-queue.js";

export interface DueTimersSettings {
  readonly redis: RedisClient;
  readonly buckets: number;
  /** As BullMQ wants it (`connectForQueue`). */
  readonly connection: ConnectionOptions;
  readonly run: RunDue;
  readonly log: Logger;
}

/** What a timer holds: the address of the job, in short. */
interface Timer {
  readonly bucket: number;
  readonly model: string;
  readonly name: string;
}

const QUEUE = "due";
/** Jobs that a process queues at a time. */
const AT_ONCE = 64;
/** At this interval it is asked which jobs should have been queued some time ago. */
const LOOK_EVERY_MS = 5_000;
/** Where there were more than one look takes, the next one follows after this. */
const LOOK_ON_MS = 1_000;
/** A timer that is there has fired within this time. */
const LATE_MS = 2_000;
/** Jobs of one look at one key. */
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

  /** For people who look. */
  get queue(): Queue {
    return this.#work.queue;
  }

  whenReady(): Promise<unknown> {
    return this.#work.whenReady();
  }

  /** Sets the timer of a job that waits, unless it is set; takes it back where the job does not. */
  async set(due: DueJob): Promise<void> {
    const inMs = await readDue(this.#settings.redis, due);
    if (inMs === undefined) {
      // One that fires now finds nothing to do.
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

  /** Looks now and then for jobs whose timers were lost, until `signal` aborts. */
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

  /** Takes no more, and waits until those that fire now are done. */
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
