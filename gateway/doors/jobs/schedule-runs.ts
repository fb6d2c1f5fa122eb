/**
 * Submits the jobs of schedules when they are due. The record of a schedule says which times are
 * due and which are done. BullMQ only wakes a process, with one job for each schedule that is due
 * soon, so that one process at a time handles the schedule. BullMQ may lose all its data: each
 * process reads the records every few seconds, and adds jobs to BullMQ for the schedules that are
 * due before its next look.
 *
 * The id of a job is derived from its schedule and its time. So a process that submits the job a
 * second time finds the job. Before a process submits a job, it notes the job's time as begun. So
 * if the process dies, the next process knows which job to look for.
 */
import { DelayedError, type ConnectionOptions, type Job, type Queue } from "bullmq";
import type { Logger } from "pino";
import { InferenceError } from "#shared/errors.js";
import type { DueSchedule, ScheduleName } from "#shared/queue/schedules/schedules.js";
import { delay } from "#shared/retry.js";
import type { Tenants } from "../../auth/tenants.js";
import type { Jobs } from "../../jobs/jobs.js";
import type { JobTerms, StoredJob } from "../../jobs/submissions.js";
import {
  dueTick,
  fired,
  triedUntil,
  UnreadableScheduleError,
  withMiss,
  withRun,
  type Schedule,
} from "../../schedules/schedule.js";
import type { Schedules, StoredSchedule } from "../../schedules/schedules.js";
import { countTick, type TickResult } from "./counts.js";
import { WorkQueue } from "./work-queue.js";

export interface ScheduleRunsSettings {
  /** From `connectForQueue`. */
  readonly connection: ConnectionOptions;
  readonly schedules: Schedules;
  readonly jobs: Jobs;
  readonly tenants: Pick<Tenants, "termsOf">;
  readonly log: Logger;
}

const QUEUE = "schedules";
const AT_ONCE = 100;
/** Interval at which a process looks into the records, in ms. */
const LOOK_EVERY_MS = 10_000;
/**
 * A look adds wake-ups for schedules that are due within this time, in ms. The next look comes
 * earlier.
 */
const LOOK_AHEAD_MS = 20_000;
/**
 * A schedule that is due again within this time, in ms, keeps its job in BullMQ. Otherwise a look
 * could skip the schedule while BullMQ still has the old job.
 */
const KEPT_MS = 60_000;
/** Most schedules that one look finds, and most that one call adds to BullMQ. */
const MOST_AT_A_LOOK = 10_000;
const AT_A_CALL = 500;
/**
 * Bounds of the pause before another attempt, in ms. The pause is half of the time since the due
 * time.
 */
const AGAIN_MS = { least: 1_000, most: 30_000 };
/**
 * If a job is later than this, in ms, and workers serve only other models, the process gives up the
 * job.
 */
const LATE_MS = 90_000;
/** Most steps until a schedule comes to rest, unless other processes change it meanwhile. */
const MOST_STEPS = 10;

export class ScheduleRuns {
  readonly #settings: ScheduleRunsSettings;
  readonly #work: WorkQueue<ScheduleName>;

  constructor(settings: ScheduleRunsSettings) {
    const { connection, log } = settings;
    this.#settings = settings;
    this.#work = new WorkQueue({
      name: QUEUE,
      connection,
      atOnce: AT_ONCE,
      run: (job, token) => this.#run(job, token),
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

  /** Adds a wake-up for a schedule that is new or has resumed. */
  async notice(name: ScheduleName): Promise<void> {
    const { schedules } = this.#settings;
    const stored = await schedules.find(name).catch(unlessUnreadable);
    const next = stored?.schedule.next ?? null;
    if (next !== null) await this.#wakeFor([{ ...name, at: next }], await schedules.now(), KEPT_MS);
  }

  /** Looks regularly for schedules that are due soon, until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    const { schedules, log } = this.#settings;
    while (!signal.aborted) {
      try {
        const now = await schedules.now();
        await this.#wakeFor(await schedules.due(now + LOOK_AHEAD_MS, MOST_AT_A_LOOK), now, LOOK_AHEAD_MS);
      } catch (error) {
        log.debug({ error: String(error) }, "schedules cannot be looked at now");
      }
      await delay(LOOK_EVERY_MS * (0.8 + Math.random() * 0.2), signal);
    }
  }

  /** Takes no further schedule, and waits until the running work has ended. */
  async close(): Promise<void> {
    await this.#work.close();
  }

  /** Adds jobs to BullMQ for schedules that BullMQ does not have. */
  async #wakeFor(due: readonly DueSchedule[], now: number, within: number): Promise<void> {
    const wakes = due
      .filter(({ at }) => at - now <= within)
      .map(({ tenant, id, at }) => ({
        name: "tick",
        data: { tenant, id },
        opts: {
          jobId: id,
          delay: Math.max(0, Math.ceil(at - now)),
        },
      }));
    for (let from = 0; from < wakes.length; from += AT_A_CALL) {
      await this.#work.queue.addBulk(wakes.slice(from, from + AT_A_CALL));
    }
  }

  async #run(job: Job<ScheduleName>, token: string | undefined): Promise<void> {
    const { log } = this.#settings;
    const { tenant, id } = job.data;
    for (let step = 0; step < MOST_STEPS; step++) {
      const after = await this.#step({ tenant, id }).catch((error: unknown): Step => {
        unlessUnreadable(error);
        // A newer version may have written the record, and a process of that version takes the
        // schedule later.
        return { wakeAt: Date.now() + AGAIN_MS.most * Math.random() };
      });
      if (after === "rests") return;
      if (after === "goes on") continue;
      await job.moveToDelayed(Math.max(Date.now(), Math.ceil(after.wakeAt)), token);
      throw new DelayedError();
    }
    log.warn({ schedule: id }, "a schedule does not come to rest; it is tried again");
    throw new Error("it does not come to rest");
  }

  /** Makes the next step of a schedule. */
  async #step(name: ScheduleName): Promise<Step> {
    const { schedules } = this.#settings;
    const stored = await schedules.find(name);
    if (stored === undefined) return "rests";
    const { schedule } = stored;
    const now = await schedules.now();
    const clock = { now, aheadMs: Date.now() - now };
    const tick = dueTick(schedule, now);
    if (schedule.firing !== null && schedule.firing !== tick) return this.#askFor(stored, schedule.firing, now);
    if (tick === undefined) return waitFor(schedule, clock);
    if (schedule.firing === null) {
      const begin = (one: Schedule) => (one.firing === null && one.next === schedule.next ? fired(one, tick) : one);
      const begun = await schedules.change(name, begin);
      // Another change came first, for example a pause.
      if (begun?.schedule.firing !== tick || begun.schedule.state !== "active") return "goes on";
    }
    return this.#submit(stored, tick, clock);
  }

  async #submit({ schedule, job, submission }: StoredSchedule, tick: number, clock: Clock): Promise<Step> {
    const { jobs, tenants, log } = this.#settings;
    const { id: scheduleId } = schedule;
    try {
      const terms = await tenants.termsOf(schedule.tenant);
      const { id } = await jobs.submissions.submitStored({ ...storedJob(schedule, job, tick, terms), submission });
      const settled = await this.#settle(schedule, (one) => withRun(one, tick, id), "made");
      log.debug({ schedule: scheduleId, job: id }, "a schedule has made a job");
      return settled === undefined ? "rests" : waitFor(settled.schedule, clock);
    } catch (error) {
      if (!(error instanceof InferenceError)) throw error;
      const { code, message } = error;
      if (jobs.mayFitLater(error, schedule, clock.now - tick > LATE_MS)) {
        const until = triedUntil(schedule, tick) + clock.aheadMs;
        return { wakeAt: Math.min(Date.now() + pauseAfter(clock.now - tick), until) };
      }
      log.info({ schedule: scheduleId, code }, "a schedule could not make a job");
      await this.#settle(schedule, (one) => withMiss(one, tick, { at: tick, code, message }), "refused");
      return "goes on";
    }
  }

  /**
   * Finds out whether the job of a begun time exists, if no process has noted its success or its
   * miss.
   */
  async #askFor({ schedule, job }: StoredSchedule, tick: number, now: number): Promise<Step> {
    const { jobs } = this.#settings;
    const missed: Schedule["error"] = { at: tick, code: "missed", message: "no job could be made until the next time" };
    let id: string | undefined;
    try {
      id = await jobs.submissions.findStored(storedJob(schedule, job, tick, { mayUse: () => true }));
    } catch (error) {
      if (!(error instanceof InferenceError)) throw error;
      // The process can compute the job's id only while a worker serves the model.
      if (jobs.mayFitLater(error, schedule, now - tick > LATE_MS))
        return { wakeAt: Date.now() + pauseAfter(now - tick) };
    }
    if (id === undefined) await this.#settle(schedule, (one) => withMiss(one, tick, missed), "skipped");
    else await this.#settle(schedule, (one) => withRun(one, tick, id), "made");
    return "goes on";
  }

  /** Notes how a time of a schedule ended, and counts that unless another process was faster. */
  async #settle(schedule: Schedule, change: (one: Schedule) => Schedule, result: TickResult) {
    let isOurs = false;
    const settled = await this.#settings.schedules.change(schedule, (one) => {
      const next = change(one);
      isOurs = next !== one;
      return next;
    });
    if (settled !== undefined && isOurs) countTick(result);
    return settled;
  }
}

/**
 * The result of a step: the schedule rests, the next step follows at once, or at a time by this
 * process's clock.
 */
type Step = "rests" | "goes on" | { readonly wakeAt: number };

/** The time by Redis's clock, and how far the clock of this process is ahead of it. */
interface Clock {
  readonly now: number;
  readonly aheadMs: number;
}

/** @param forMs ms since the due time */
function pauseAfter(forMs: number): number {
  return Math.min(Math.max(forMs / 2, AGAIN_MS.least), AGAIN_MS.most);
}

function unlessUnreadable(error: unknown): undefined {
  if (!(error instanceof UnreadableScheduleError)) throw error;
  return undefined;
}

function waitFor({ next }: Schedule, { now, aheadMs }: Clock): Step {
  if (next === null || next - now > KEPT_MS) return "rests";
  return { wakeAt: next + aheadMs };
}

/** Makes the job of one time of a schedule, the same in every process. */
function storedJob({ id, tenant, model, version }: Schedule, body: Buffer, tick: number, terms: JobTerms): StoredJob {
  const key = `\nschedule\n${id}\n${tick}`;
  return { tenant, model, version: version ?? undefined, ...terms, body, key, tick: { schedule: id, at: tick } };
}
