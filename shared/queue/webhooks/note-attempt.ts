/** The typed wrapper of note-attempt.lua: notes an attempt, and what becomes of the delivery. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { webhookKeys } from "../keys.js";
import type { DeliveryRun } from "./begin-delivery.js";
import type { Attempt, DeliveryState } from "./deliveries.js";

export interface Noted {
  readonly state: DeliveryState;
  /** Undefined where none was made. */
  readonly attempt: Attempt | undefined;
  /** When the next one is due, in ms from now; undefined where none comes. */
  readonly nextInMs: number | undefined;
}

/** Most attempts that a delivery shows: the newest. */
const MOST_ATTEMPTS = 50;

const script = defineScript(new URL("./note-attempt.lua", import.meta.url), (reply) => word(reply, ["noted", "gone"]));

/** @param ttlMs how long the delivery is known after its last attempt */
export function noteAttempt(
  redis: RedisClient,
  { tenant, message, run }: DeliveryRun,
  { state, attempt, nextInMs }: Noted,
  ttlMs: number,
): Promise<"noted" | "gone"> {
  const keys = [webhookKeys.delivery(tenant, message), webhookKeys.deliveries(tenant)];
  const line = attempt === undefined ? "" : JSON.stringify(attempt);
  return script(redis, keys, [run, state, line, nextInMs ?? "", ttlMs, MOST_ATTEMPTS]);
}
