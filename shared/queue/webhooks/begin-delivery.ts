/** The typed wrapper of begin-delivery.lua: notes that a jobs process has to deliver a message. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list, text, word } from "../../redis/script.js";
import { webhookKeys } from "../keys.js";

/** One run of one delivery. */
export interface DeliveryRun {
  readonly tenant: string;
  readonly message: string;
  /** The name: the outbox entry of the event, or the name of the request for a replay. */
  readonly run: string;
}

export interface DeliveryContent {
  readonly event: string;
  /** The job of the event, or "". */
  readonly job: string;
  /** The id of a webhook of the tenant; "" for a job's own webhook. */
  readonly webhook: string;
  /** The address of a job's own webhook, as in the job's record; else "". */
  readonly target: string;
  /** The bytes to send, at every attempt. */
  readonly body: string;
}

export interface Kept {
  /** How long Redis keeps an ended delivery, in ms. */
  readonly ttlMs: number;
  /** Most ended deliveries of a tenant that Redis keeps. */
  readonly most: number;
}

export interface Begun {
  readonly said: "begun" | "ended" | "unknown";
  /** Runs that no process has to make any more, since this call. */
  readonly replaced: readonly DeliveryRun[];
}

/**
 * A tenant with pending deliveries may have this many times as many deliveries, because a burst of
 * events must reach a receiver that is slower than the events.
 */
const MOST_FACTOR = 10;
/**
 * Ms. A pending delivery waits at least so long for a process that attempts it, beside its own
 * waits.
 */
const PENDING_MS = 7 * 86_400_000;

/** How long Redis keeps a pending delivery, in ms. */
export function pendingTtlMs({ ttlMs }: Kept): number {
  return Math.max(ttlMs, PENDING_MS);
}

const script = defineScript(
  new URL("./begin-delivery.lua", import.meta.url),
  (reply) => {
    const [said, ...names] = list(reply).map(text);
    return { said: word(said, ["begun", "ended", "unknown"]), names };
  },
  {
    keys: ["deliveries", "delivery", "ended", "pending", { ofJob: [] }],
    args: ["message", "run", "ttl", "most", "tenant", { content: ["event", "job", "webhook", "target", "body"] }],
    durable: true,
  },
);

/** @param content undefined for a replay */
export async function beginDelivery(
  redis: RedisClient,
  { tenant, message, run }: DeliveryRun,
  kept: Kept,
  content: DeliveryContent | undefined,
): Promise<Begun> {
  const job = content?.job ?? "";
  const keys = {
    deliveries: webhookKeys.deliveries(tenant),
    delivery: webhookKeys.delivery(tenant, message),
    ended: webhookKeys.ended(tenant),
    pending: webhookKeys.pending,
    ofJob: job === "" ? [] : [webhookKeys.ofJob(tenant, job)],
  };
  const { said, names } = await script(redis, keys, {
    message,
    run,
    ttl: pendingTtlMs(kept),
    most: kept.most * MOST_FACTOR,
    tenant,
    content: content === undefined ? [] : [content],
  });
  const replaced: DeliveryRun[] = [];
  for (let i = 0; i + 1 < names.length; i += 2) {
    replaced.push({ tenant, message: names[i] ?? "", run: names[i + 1] ?? "" });
  }
  return { said, replaced };
}
