/** What is known of deliveries, read with plain commands. begin-delivery.lua has the fields. */
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

export interface Delivery {
  readonly message: string;
  readonly event: string;
  readonly job: string;
  readonly webhook: string;
  readonly body: string;
  readonly state: DeliveryState;
  readonly run: string;
  /** Attempts of this run, whether they are still kept or not. */
  readonly tries: number;
  readonly attempts: readonly Attempt[];
  /** Redis ms; undefined where none comes. */
  readonly nextAt: number | undefined;
}

export async function readDelivery(redis: RedisClient, tenant: string, message: string): Promise<Delivery | undefined> {
  const fields = await redis.hgetall(webhookKeys.delivery(tenant, message));
  const { event, webhook, run, body, job = "", tries = "0", attempts = "", next = "" } = fields;
  const state = deliveryStates.find((known) => known === fields["state"]);
  if (event === undefined || webhook === undefined || run === undefined || body === undefined) return undefined;
  if (state === undefined) return undefined;
  const lines = attempts.split("\n").filter((line) => line !== "");
  return {
    message,
    event,
    job,
    webhook,
    body,
    state,
    run,
    tries: Number(tries),
    attempts: lines.map((line) => JSON.parse(line) as Attempt),
    nextAt: next === "" ? undefined : Number(next),
  };
}

/**
 * The tenant's messages, newest first.
 * @param from how many are passed over
 */
export function listDeliveries(redis: RedisClient, tenant: string, from: number, count: number): Promise<string[]> {
  return redis.zrevrange(webhookKeys.deliveries(tenant), from, from + count - 1);
}

/** How many of the tenant's messages are newer; undefined for one that is not among them. */
export async function placeOf(redis: RedisClient, tenant: string, message: string): Promise<number | undefined> {
  return (await redis.zrevrank(webhookKeys.deliveries(tenant), message)) ?? undefined;
}
