/** The typed wrapper of note-ended.lua: notes the event that a batch has ended, once. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript } from "../../redis/script.js";
import { bucketTag } from "../bucket-tag.js";
import type { EventType } from "../pieces/events.js";
import { batchToldKey, eventsKey, wantedKey } from "../keys.js";

/** A run that finds the batch still open calls again, at most for so long after the first call. */
const TOLD_MS = 7 * 86_400_000;
/** Any bucket's outbox would do, because a batch lies in no bucket. */
const BUCKET = 0;

const script = defineScript(new URL("./note-ended.lua", import.meta.url), () => undefined, {
  keys: ["told", "wanted", "events"],
  args: ["tag", "tenant", "type", "facts", "ttl"],
  durable: true,
});

export function noteEnded(
  redis: RedisClient,
  tenant: string,
  id: string,
  type: EventType,
  facts: object,
): Promise<void> {
  const keys = { told: batchToldKey(BUCKET, id), wanted: wantedKey(BUCKET), events: eventsKey(BUCKET) };
  return script(redis, keys, { tag: bucketTag(BUCKET), tenant, type, facts: JSON.stringify(facts), ttl: TOLD_MS });
}
