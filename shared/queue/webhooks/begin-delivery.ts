/** The typed wrapper of begin-delivery.lua: notes that a message is to be delivered. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list, text, word } from "../../redis/script.js";
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
  /** The id of one of the tenant's; "" for a job's own. */
  readonly webhook: string;
  /** Where a job's own leads, as its record has it; else "". */
  readonly target: string;
  /** The bytes that are sent, at every attempt. */
  readonly body: string;
}

export interface Kept {
  /** How long a delivery that has ended is known, in ms. */
  readonly ttlMs: number;
  /** Most deliveries of a tenant that are known after they have ended. */
  readonly most: number;
}

export interface Begun {
  readonly said: "begun" | "ended" | "unknown";
  /** Runs that nobody has to make any more, since this call. */
  readonly replaced: readonly DeliveryRun[];
}

/**
 * A tenant may have so many times as many deliveries if some are pending: a burst of events is to
 * reach a receiver that is slower than the events come.
 */
const MOST_FACTOR = 10;
/** A pending delivery waits at least so long for somebody who attempts it, beside its own waits. */
const PENDING_MS = 7 * 86_400_000;

/** How long a pending delivery is known, in ms. */
export function pendingTtlMs({ ttlMs }: Kept): number {
  return Math.max(ttlMs, PENDING_MS);
}

const script = defineScript(
  new URL("./begin-delivery.lua", import.meta.url),
  (reply) => {
    const [said, ...names] = list(reply).map(text);
    return { said: word(said, ["begun", "ended", "unknown"]), names };
  },
  { durable: true },
);

/** @param content undefined where it is to be delivered once more */
export async function beginDelivery(
  redis: RedisClient,
  { tenant, message, run }: DeliveryRun,
  kept: Kept,
  content: DeliveryContent | undefined,
): Promise<Begun> {
  const { deliveries, delivery, ended, pending, ofJob } = webhookKeys;
  const keys = [deliveries(tenant), delivery(tenant, message), ended(tenant), pending];
  const { event, job = "", webhook, target, body } = content ?? {};
  if (job !== "") keys.push(ofJob(tenant, job));
  const what = content === undefined ? [] : [event, job, webhook, target, body].map((one) => one ?? "");
  const args = [message, run, pendingTtlMs(kept), kept.most * MOST_FACTOR, tenant, ...what];
  const { said, names } = await script(redis, keys, args);
  const replaced: DeliveryRun[] = [];
  for (let i = 0; i + 1 < names.length; i += 2) {
    replaced.push({ tenant, message: names[i] ?? "", run: names[i + 1] ?? "" });
  }
  return { said, replaced };
}
