/** The records of deliveries, read with plain commands. begin-delivery.lua has the fields. */
import { timeAt } from "../../redis/clock.js";
import type { RedisClient } from "../../redis/connect.js";
import { webhookKeys } from "../keys.js";

export const deliveryStates = ["pending", "delivered", "failed"] as const;
export type DeliveryState = (typeof deliveryStates)[number];

/** An attempt in the log. */
export interface Attempt {
  /** RFC 3339. */
  readonly at: string;
  /** HTTP status; null if no response came. */
  readonly status: number | null;
  /** The failure, in a word; null after a success. */
  readonly error: string | null;
  /** The duration. */
  readonly ms: number;
}

/** A delivery in a list. */
export interface DeliverySummary {
  readonly message: string;
  readonly event: string;
  /** The id of the job of the event, or "". */
  readonly job: string;
  /** The id of a webhook of the tenant; "" for a job's own webhook. */
  readonly webhook: string;
  readonly state: DeliveryState;
  readonly run: string;
  /** All attempts of this run, even attempts that are no longer kept. */
  readonly tries: number;
  readonly attempts: readonly Attempt[];
  /** Redis ms of the next attempt; undefined if none comes. */
  readonly nextAt: number | undefined;
}

/** Everything that a process needs to send the message. */
export interface Delivery extends DeliverySummary {
  readonly body: string;
  /** The address of a job's own webhook, as in the job's record; else "". */
  readonly target: string;
}

const FIELDS = ["event", "job", "webhook", "state", "run", "tries", "attempts", "next"] as const;

/** Reads no body, because a body may be long. */
export async function readSummary(
  redis: RedisClient,
  tenant: string,
  message: string,
): Promise<DeliverySummary | undefined> {
  return summaryOf(message, await redis.hmget(webhookKeys.delivery(tenant, message), ...FIELDS));
}

export async function readDelivery(redis: RedisClient, tenant: string, message: string): Promise<Delivery | undefined> {
  const [body, target, ...fields] = await redis.hmget(
    webhookKeys.delivery(tenant, message),
    "body",
    "target",
    ...FIELDS,
  );
  const summary = summaryOf(message, fields);
  return summary && typeof body === "string" ? { ...summary, body, target: target ?? "" } : undefined;
}

function summaryOf(message: string, fields: readonly (string | null)[]): DeliverySummary | undefined {
  const [event, job, webhook, stated, run, tries, attempts, next] = fields.map((field) => field ?? "");
  const state = deliveryStates.find((known) => known === stated);
  if (event === undefined || webhook === undefined || run === undefined || run === "") return undefined;
  if (state === undefined) return undefined;
  const lines = (attempts ?? "").split("\n").filter((line) => line !== "");
  return {
    message,
    event,
    job: job ?? "",
    webhook,
    state,
    run,
    tries: Number(tries),
    attempts: lines.map((line) => JSON.parse(line) as Attempt),
    nextAt: next ? Number(next) : undefined,
  };
}

/** The messages of a tenant, or only its messages about one job. */
export interface Messages {
  readonly tenant: string;
  /** The job's id; undefined for all messages. */
  readonly job?: string | undefined;
}

/**
 * Messages, newest first.
 * @param from how many messages to pass over
 */
export function listDeliveries(redis: RedisClient, of: Messages, from: number, count: number): Promise<string[]> {
  return redis.zrevrange(keyOf(of), from, from + count - 1);
}

/** How many of these messages are newer than this message; undefined if this message is unknown. */
export async function placeOf(redis: RedisClient, of: Messages, message: string): Promise<number | undefined> {
  return (await redis.zrevrank(keyOf(of), message)) ?? undefined;
}

function keyOf({ tenant, job }: Messages): string {
  return job === undefined ? webhookKeys.deliveries(tenant) : webhookKeys.ofJob(tenant, job);
}

/** A delivery, in any run. */
export interface NamedDelivery {
  readonly tenant: string;
  readonly message: string;
}

/** The time of the server that has the deliveries, in whole seconds, as ms. */
export async function deliveriesClock(redis: RedisClient): Promise<number> {
  return Math.floor((await timeAt(redis, webhookKeys.pending)) / 1_000) * 1_000;
}

/**
 * Pending deliveries whose attempt is overdue at this time, the longest due first. A delivery may
 * wait for a slow receiver, so a process that looks at a delivery delays the next look.
 * @param due ms, by the clock of Redis
 */
export async function overdueDeliveries(redis: RedisClient, due: number, most: number): Promise<NamedDelivery[]> {
  const members = await redis.zrangebyscore(webhookKeys.pending, "-inf", due, "LIMIT", 0, most);
  return members.map((member) => {
    const end = member.indexOf(":");
    return { tenant: member.slice(0, end), message: member.slice(end + 1) };
  });
}

/** Notes that a process has looked at a delivery, or that the delivery is no longer pending. */
export async function noteLooked(
  redis: RedisClient,
  { tenant, message }: NamedDelivery,
  isPending: boolean,
): Promise<void> {
  const member = `${tenant}:${message}`;
  if (isPending) await redis.zadd(webhookKeys.pending, "XX", await deliveriesClock(redis), member);
  else await redis.zrem(webhookKeys.pending, member);
}
