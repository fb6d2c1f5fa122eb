/** Makes, reads, lists, changes and removes the schedules of a tenant, at any gateway. */
import { fixedError, InferenceError } from "#shared/errors.js";
import { announceSchedule } from "#shared/queue/pieces/events.js";
import { scheduleKeys } from "#shared/queue/keys.js";
import { changeSchedule } from "#shared/queue/schedules/change-schedule.js";
import { makeSchedule } from "#shared/queue/schedules/make-schedule.js";
import {
  dueSchedules,
  listSchedules,
  placeOfSchedule,
  readSchedule,
  type DueSchedule,
  type ScheduleName,
} from "#shared/queue/schedules/schedules.js";
import { timeAt } from "#shared/redis/clock.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { readTraceparent, writeTraceparent, type SpanIds } from "#shared/trace/context.js";
import { tooManyOf } from "../admission/budget.js";
import { parseSchedule, scheduleText, type Schedule } from "./schedule.js";

/** Most schedules of a tenant that has no limit of its own. */
const MOST = 1_000;
const MIB = 1_048_576;
/** Most bytes of the jobs of a tenant's schedules, and of all tenants' schedules. */
const LIMITS = { mostBytes: 16 * MIB, mostBytesOfAll: 256 * MIB };
/** Most attempts at a change that other changes overtake. */
const MOST_TRIES = 10;

export interface StoredSchedule {
  readonly schedule: Schedule;
  /** The job to submit at each time, as the client has sent it. */
  readonly job: Buffer;
  /** The span of the submission; undefined if the submission is not sampled. */
  readonly submission?: SpanIds | undefined;
}

export class Schedules {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** The time by Redis's clock, in ms since 1970, which schedules use. */
  async now(): Promise<number> {
    return Math.floor(await timeAt(this.#redis, scheduleKeys.due));
  }

  /** @returns undefined if the tenant has no such schedule */
  async find(name: ScheduleName): Promise<StoredSchedule | undefined> {
    const stored = await readSchedule(this.#redis, name);
    if (stored === undefined) return undefined;
    const { facts, job, trace } = stored;
    return { schedule: parseSchedule(facts), job, submission: readTraceparent(trace) };
  }

  /**
   * Lists the schedules, the newest first.
   * @param after the id behind which the page begins
   * @returns undefined if there is no such id
   */
  async list(
    tenant: string,
    most: number,
    after: string | undefined,
  ): Promise<{ readonly data: readonly StoredSchedule[]; readonly hasMore: boolean } | undefined> {
    const place = after === undefined ? -1 : await placeOfSchedule(this.#redis, { tenant, id: after });
    if (place === undefined) return undefined;
    const ids = await listSchedules(this.#redis, tenant, place + 1, most + 1);
    const found = await Promise.all(ids.slice(0, most).map((id) => this.find({ tenant, id })));
    return { data: found.filter((one) => one !== undefined), hasMore: ids.length > most };
  }

  /** The schedules that are due up to a time, the most overdue first. */
  due(until: number, most: number): Promise<DueSchedule[]> {
    return dueSchedules(this.#redis, until, most);
  }

  /**
   * Records a new schedule, and announces it to a jobs process.
   * @param asked a digest of all members that the client sent
   * @param most schedules that the tenant may have; absent: the usual number
   * @param submission the span of the submission; absent if the submission is not sampled
   * @returns whether an earlier call has made the schedule
   * @throws InferenceError `schedule_limit`, `idempotency_mismatch` or `unavailable`
   */
  async make(schedule: Schedule, job: Buffer, asked: string, most = MOST, submission?: SpanIds): Promise<boolean> {
    const { tenant, id, createdAt: madeAt, next } = schedule;
    const trace = submission && writeTraceparent(submission);
    const record = { tenant, id, facts: scheduleText(schedule), job, asked, madeAt, dueAt: next ?? madeAt, trace };
    switch (await makeSchedule(this.#redis, record, { ...LIMITS, most })) {
      case "made":
        await this.#announce(schedule);
        return false;
      case "known":
        return true;
      case "mismatch":
        throw fixedError("idempotency_mismatch", "usual");
      case "full":
        throw new InferenceError(
          "schedule_limit",
          `there are ${most} schedules already, those that have ended included, and no more are allowed`,
          tooManyOf("schedules"),
        );
      case "too-large":
        throw new InferenceError(
          "schedule_limit",
          `the jobs of all schedules would be larger than the limit of ${LIMITS.mostBytes} bytes`,
        );
      case "no-room":
        throw fixedError("unavailable", "schedules");
    }
  }

  /**
   * @param change makes the new schedule, and may run several times; undefined removes the schedule
   * @returns the schedule after the change; undefined if the tenant has no such schedule, or no
   * longer
   */
  async change(
    name: ScheduleName,
    change: (schedule: Schedule) => Schedule | undefined,
  ): Promise<StoredSchedule | undefined> {
    for (let i = 0; i < MOST_TRIES; i++) {
      const stored = await readSchedule(this.#redis, name);
      if (stored === undefined) return undefined;
      const before = parseSchedule(stored.facts);
      const schedule = change(before);
      const to = schedule && scheduleText(schedule);
      const dueAt = schedule?.next ?? undefined;
      if ((await changeSchedule(this.#redis, name, { from: stored.facts, to, dueAt })) === "conflict") continue;
      if (schedule === undefined) return undefined;
      if (before.state === "paused" && schedule.state === "active") await this.#announce(schedule);
      return { schedule, job: stored.job };
    }
    throw fixedError("outcome_unknown", "change");
  }

  /**
   * Announces a schedule. If that fails, the jobs processes find the schedule some seconds later.
   */
  async #announce({ tenant, id }: Schedule): Promise<void> {
    await announceSchedule(this.#redis, tenant, id).catch(() => undefined);
  }
}
