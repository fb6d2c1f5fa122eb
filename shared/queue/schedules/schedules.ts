/** Schedules, read with plain commands. make-schedule.lua has their fields. */
import type { RedisClient } from "../../redis/connect.js";
import { scheduleKeys } from "../keys.js";

export interface ScheduleName {
  readonly tenant: string;
  readonly id: string;
}

export interface StoredSchedule {
  /** JSON. */
  readonly facts: string;
  /** The client's job, unchanged. */
  readonly job: Buffer;
  /** The span of the submission, as a traceparent; undefined if the submission is not sampled. */
  readonly trace: string | undefined;
}

/** The keys of the scripts. */
export function keysOf({ tenant, id }: ScheduleName) {
  const { schedule, ids, bytes, due } = scheduleKeys;
  return { schedule: schedule(tenant, id), ids: ids(tenant), bytes, due };
}

export async function readSchedule(
  redis: RedisClient,
  { tenant, id }: ScheduleName,
): Promise<StoredSchedule | undefined> {
  const [facts, job, trace] = await redis.hmgetBuffer(scheduleKeys.schedule(tenant, id), "facts", "job", "trace");
  return facts && job ? { facts: facts.toString("utf8"), job, trace: trace?.toString() } : undefined;
}

/**
 * The tenant's schedules, newest first.
 * @param from how many schedules to pass over
 */
export function listSchedules(redis: RedisClient, tenant: string, from: number, count: number): Promise<string[]> {
  return redis.zrevrange(scheduleKeys.ids(tenant), from, from + count - 1);
}

/** How many of the tenant's schedules are newer; undefined if this schedule is unknown. */
export async function placeOfSchedule(redis: RedisClient, { tenant, id }: ScheduleName): Promise<number | undefined> {
  return (await redis.zrevrank(scheduleKeys.ids(tenant), id)) ?? undefined;
}

/** How many schedules the tenant has, those included that have ended. */
export function countSchedules(redis: RedisClient, tenant: string): Promise<number> {
  return redis.zcard(scheduleKeys.ids(tenant));
}

export interface DueSchedule extends ScheduleName {
  /** Redis ms. */
  readonly at: number;
}

/** The schedules due up to a time, the most overdue first. */
export async function dueSchedules(redis: RedisClient, until: number, most: number): Promise<DueSchedule[]> {
  const found = await redis.zrangebyscore(scheduleKeys.due, "-inf", until, "WITHSCORES", "LIMIT", 0, most);
  const due: DueSchedule[] = [];
  for (let i = 0; i + 1 < found.length; i += 2) {
    const [tenant = "", id = ""] = (found[i] ?? "").split(":");
    due.push({ tenant, id, at: Number(found[i + 1]) });
  }
  return due;
}
