/**
 * The outbox: scripts note events there (events.lua), and a jobs process takes each event
 * (`webhooks/outbox.ts`).
 */
import type { RedisClient } from "../../redis/connect.js";
import { jobEventTypes } from "./job-events.js";
import { eventsKey } from "../keys.js";

/** The events that webhooks can subscribe to. */
export const eventTypes = [
  ...jobEventTypes,
  "sequence.expired",
  "batch.completed",
  "batch.failed",
  "batch.cancelled",
  "batch.expired",
] as const;
export type EventType = (typeof eventTypes)[number];

/** An entry that asks for a delivery once more: no event, but on the same way. */
export const REPLAY = "replay";

/** An entry that says that a schedule is new or resumes: no event either. */
export const SCHEDULED = "schedule";

/**
 * Asks for a delivery once more.
 * @param run a name: a second call under the same name makes no second run
 */
export async function askForReplay(redis: RedisClient, tenant: string, message: string, run: string): Promise<void> {
  await redis.xadd(eventsKey(0), "*", "t", tenant, "e", REPLAY, "d", JSON.stringify({ message, run }));
}

/** Asks the jobs processes to look at a schedule that is due from now on. */
export async function announceSchedule(redis: RedisClient, tenant: string, id: string): Promise<void> {
  await redis.xadd(eventsKey(0), "*", "t", tenant, "e", SCHEDULED, "d", JSON.stringify({ id }));
}
