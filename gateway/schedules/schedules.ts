/** A tenant's schedules: made, read, listed, changed and removed, at any gateway. */
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
import { parseSchedule, scheduleText, type Schedule } from "./schedule.js";

/** Most schedules of a tenant. */
const MOST = 1_000;
const MIB = 1_048_576;
/** What the jobs of schedules take: most of a tenant, and most of all. */
const LIMITS = { most: MOST, mostBytes: 16 * MIB, mostBytesOfAll: 256 * MIB };
/** A change that others overtake is made again so often. */
const MOST_TRIES = 10;

export interface StoredSchedule {
  readonly schedule: Schedule;
  /** What it submits each time, as its client has sent it. */
  readonly job: Buffer;
}

export class Schedules {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** The time by which schedules go, in ms since 1970: Redis's. */
  async now(): Promise<number> {
    return Math.floor(await timeAt(this.#redis, scheduleKeys.due));
  }

  /** @returns undefined where the tenant has no such schedule */
  async find(name: ScheduleName): Promise<StoredSchedule | undefined> {
    const stored = await readSchedule(this.#redis, name);
    return stored && { schedule: parseSchedule(stored.facts), job: stored.job };
  }

  /**
   * The newest first.
   * @param after the id behind which the page begins
   * @returns undefined where there is no such id
   */
  async list(
    tenant: string,
    most: number,
    after: string | undefined,
  ): Promise<{ readonly page: readonly StoredSchedule[]; readonly hasMore: boolean } | undefined> {
    const place = after === undefined ? -1 : await placeOfSchedule(this.#redis, { tenant, id: after });
    if (place === undefined) return undefined;
    const ids = await listSchedules(this.#redis, tenant, place + 1, most + 1);
    const found = await Promise.all(ids.slice(0, most).map((id) => this.find({ tenant, id })));
    return { page: found.filter((one) => one !== undefined), hasMore: ids.length > most };
  }

  /** Those that are due up to a time, the most overdue first. */
  due(until: number, most: number): Promise<DueSchedule[]> {
    return dueSchedules(this.#redis, until, most);
  }

  /**
   * Records a new schedule, and tells a jobs process of it.
   * @param asked a digest of all that its client asked for
   * @returns whether it was there before
   * @throws InferenceError `schedule_limit`, `idempotency_mismatch` or `unavailable`
   */
  async make(schedule: Schedule, job: Buffer, asked: string): Promise<boolean> {
    const { tenant, id, createdAt: madeAt, next } = schedule;
    const record = { tenant, id, facts: scheduleText(schedule), job, asked, madeAt, dueAt: next ?? madeAt };
    switch (await makeSchedule(this.#redis, record, LIMITS)) {
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
          `there are ${MOST} schedules already, those that have ended included, and no more are allowed`,
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
   * @param change makes the schedule as it is to be; undefined where it is to be removed. It may be
   * called several times
   * @returns as it is now; undefined where the tenant has no such schedule, or none any more
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

  /** Where nobody can be told, the jobs processes find it themselves, some seconds later. */
  async #announce({ tenant, id }: Schedule): Promise<void> {
    await announceSchedule(this.#redis, tenant, id).catch(() => undefined);
  }
}
