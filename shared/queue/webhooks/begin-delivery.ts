/** The typed wrapper of begin-delivery.lua: notes that a message is to be delivered. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { webhookKeys } from "../keys.js";

/** One run of one delivery. */
export interface DeliveryRun {
  readonly tenant: string;
  readonly message: string;
  /** Named by the entry of the outbox that asks for it. */
  readonly run: string;
}

export interface DeliveryContent {
  readonly event: string;
  /** The job that it tells of, or "". */
  readonly job: string;
  readonly webhook: string;
  /** The bytes that are sent, at every attempt. */
  readonly body: string;
}

export interface Kept {
  /** How long a delivery is known after it was last attempted, in ms. */
  readonly ttlMs: number;
  /** Most deliveries of a tenant that are known. */
  readonly most: number;
}

const script = defineScript(
  new URL("./begin-delivery.lua", import.meta.url),
  (reply) => word(reply, ["begun", "ended", "unknown"]),
  { durable: true },
);

/** @param content undefined where it is to be delivered once more */
export function beginDelivery(
  redis: RedisClient,
  { tenant, message, run }: DeliveryRun,
  { ttlMs, most }: Kept,
  content: DeliveryContent | undefined,
): Promise<"begun" | "ended" | "unknown"> {
  const keys = [webhookKeys.deliveries(tenant), webhookKeys.delivery(tenant, message)];
  const what = content === undefined ? [] : [content.event, content.job, content.webhook, content.body];
  return script(redis, keys, [message, run, ttlMs, most, ...what]);
}
