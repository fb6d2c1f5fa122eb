/** The typed wrapper of look-at-pending.lua: the pending deliveries of all tenants. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text } from "../../redis/script.js";
import { webhookKeys } from "../keys.js";

export interface PendingDeliveries {
  readonly pending: number;
  /** Redis ms at which the oldest began; undefined if none is pending. */
  readonly oldestAt: number | undefined;
}

const script = defineScript(
  new URL("./look-at-pending.lua", import.meta.url),
  (reply): PendingDeliveries => {
    const [pending, since] = list(reply);
    const oldest = text(since);
    return { pending: integer(pending), oldestAt: oldest === "" ? undefined : Number(oldest) };
  },
  { keys: ["pending"], args: ["delivery"], readsOnly: true },
);

/** @throws the client's error if Redis does not answer */
export function lookAtPending(redis: RedisClient): Promise<PendingDeliveries> {
  // A member is `tenant:message`, as the keys of deliveries end.
  return script(redis, { pending: webhookKeys.pending }, { delivery: webhookKeys.delivery("", "").slice(0, -1) });
}
