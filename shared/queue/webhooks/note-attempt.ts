/** The typed wrapper of note-attempt.lua: notes an attempt, and the delivery's state after it. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { webhookKeys } from "../keys.js";
import { pendingTtlMs, type DeliveryRun, type Kept } from "./begin-delivery.js";
import type { Attempt, DeliveryState } from "./deliveries.js";

export interface Noted {
  readonly state: DeliveryState;
  /** Undefined if there was no attempt. */
  readonly attempt: Attempt | undefined;
  /** When the next attempt is due, in ms from now; undefined if none comes. */
  readonly nextInMs: number | undefined;
}

/** Most attempts that a delivery keeps: the newest. */
const MOST_ATTEMPTS = 50;

const script = defineScript(new URL("./note-attempt.lua", import.meta.url), (reply) => word(reply, ["noted", "gone"]), {
  keys: ["delivery", "deliveries", "ended", "pending"],
  args: ["run", "state", "attempt", "nextIn", "ttl", "mostAttempts", "message", "mostEnded", "tenant"],
});

export function noteAttempt(
  redis: RedisClient,
  { tenant, message, run }: DeliveryRun,
  { state, attempt, nextInMs }: Noted,
  kept: Kept,
): Promise<"noted" | "gone"> {
  const keys = {
    delivery: webhookKeys.delivery(tenant, message),
    deliveries: webhookKeys.deliveries(tenant),
    ended: webhookKeys.ended(tenant),
    pending: webhookKeys.pending,
  };
  return script(redis, keys, {
    run,
    state,
    attempt: attempt === undefined ? "" : JSON.stringify(attempt),
    nextIn: nextInMs ?? "",
    ttl: state === "pending" ? pendingTtlMs(kept) : kept.ttlMs,
    mostAttempts: MOST_ATTEMPTS,
    message,
    mostEnded: kept.most,
    tenant,
  });
}
