/** The typed wrapper of attend.lua: readers keep a stream running, and a stream without readers ends. */
import type { RequestAddress } from "#shared/contract/request-id.js";
import { outcomeKey } from "#shared/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { defineScript, word } from "#shared/redis/script.js";

const script = defineScript(new URL("./attend.lua", import.meta.url), (reply) =>
  word(reply, ["attended", "background", "ended", "unknown"]),
);

/** Somebody wants the stream for `ms` from now on, on Redis's clock. */
export function attend(redis: RedisClient, { lane, request }: RequestAddress, ms: number) {
  return script(redis, [outcomeKey(lane, request)], [ms]);
}

/** From now on the request runs to its end whether or not anybody reads. */
export function detach(redis: RedisClient, { lane, request }: RequestAddress) {
  return script(redis, [outcomeKey(lane, request)], [""]);
}
