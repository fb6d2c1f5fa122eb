/** What is known of deliveries, read with plain commands. begin-delivery.lua has the fields. */
import { timeAt } from "../../redis/clock.js";
import type { RedisClient } from "../../redis/connect.js";
import { webhookKeys } from "../keys.js";

export const deliveryStates = ["pending", "delivered", "failed"] as const;
export type DeliveryState = (typeof deliveryStates)[number];

/** As the log shows it. */
export interface Attempt {
  /** RFC 3339. */
  readonly at: string;
  /** HTTP status; null where none came. */
  readonly status: number | null;
  /** What went wrong, in a word; null where nothing did. */
  readonly error: string | null;
  /** How long it took. */
  readonly ms: number;
}

/** What a list shows of a delivery. */
export interface DeliverySummary {
  readonly message: string;
  readonly event: string;
  /** The id of the job that it tells of, or "". */
  readonly job: string;
  /** The id of one of the tenant's; "" for a job's own. */
  readonly webhook: string;
  readonly state: DeliveryState;
  readonly run: string;
  /** Attempts of this run, whether they are still kept or not. */
  readonly tries: number;
  readonly attempts: readonly Attempt[];
  /** Redis ms; undefined where none comes. */
  readonly nextAt: number | undefined;
}

/** All that is needed to send it. */
export interface Delivery extends DeliverySummary {
  readonly body: string;
  /** Where a job's own webhook leads, as the job's record has it; else "". */
  readonly target: string;
}

const FIELDS = ["event", "job", "webhook", "state", "run", "tries", "attempts", "next"] as const;

/** Its body may be long, and is not read. */
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

/** The messages of a tenant, or those of them that tell of one job. */
export interface Messages {
  readonly tenant: string;
  /** Its id; undefined for all. */
  readonly job?: string | undefined;
}

/**
 * Messages, newest first.
 * @param from how many are passed over
 */
export function listDeliveries(redis: RedisClient, of: Messages, from: number, count: number): Promise<string[]> {
  return redis.zrevrange(keyOf(of), from, from + count - 1);
}

/** How many of them are newer than this one; undefined for one that is not among them. */
export async function placeOf(redis: RedisClient, of: Messages, message: string): Promise<number | undefined> {
  return (await redis.zrevrank(keyOf(of), message)) ?? undefined;
}

function keyOf({ tenant, job }: Messages): string {
  return job === undefined ? webhookKeys.deliveries(tenant) : webhookKeys.ofJob(tenant, job);
}

/** A delivery, whatever run of it. */
export interface NamedDelivery {
  readonly tenant: string;
  readonly message: string;
}

/** The time of the server that has the deliveries, in whole seconds, as ms. */
export async function deliveriesClock(redis: RedisClient): Promise<number> {
  return Math.floor((await timeAt(redis, webhookKeys.pending)) / 1_000) * 1_000;
}

/**
 * Pending deliveries that should have been attempted by then, the longest due first. They may wait
 * for a receiver that is slow; so who looks at one says that it need not be looked at for a while.
 * @param due ms, by the clock of Redis
 */
export async function overdueDeliveries(redis: RedisClient, due: number, most: number): Promise<NamedDelivery[]> {
  const members = await redis.zrangebyscore(webhookKeys.pending, "-inf", due, "LIMIT", 0, most);
  return members.map((member) => {
    const end = member.indexOf(":");
    return { tenant: member.slice(0, end), message: member.slice(end + 1) };
  });
}

/** Notes that a delivery was looked at, or that it is pending no more. */
export async function noteLooked(
  redis: RedisClient,
  { tenant, message }: NamedDelivery,
  isPending: boolean,
): Promise<void> {
  const member = `${tenant}:${message}`;
  if (isPending) await redis.zadd(webhookKeys.pending, "XX", await deliveriesClock(redis), member);
  else await redis.zrem(webhookKeys.pending, member);
}
