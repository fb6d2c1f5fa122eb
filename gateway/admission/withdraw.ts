/**
 * The typed wrapper of withdraw.lua: a request that was ended before a worker read it leaves the
 * queue.
 */
import type { RequestAddress } from "#shared/contract/request-id.js";
import { GROUP, laneKeys, outcomeKey } from "#shared/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { defineScript, word } from "#shared/redis/script.js";

const script = defineScript(new URL("./withdraw.lua", import.meta.url), (reply) =>
  word(reply, ["withdrawn", "held", "left"]),
);

/** Safe to repeat. */
export function withdraw(redis: RedisClient, { lane, request }: RequestAddress) {
  return script(redis, [laneKeys(lane).ready, outcomeKey(lane, request)], [GROUP]);
}
