/**
 * The typed wrapper of withdraw.lua: takes a request out of the queue that ended before a worker
 * read it.
 */
import type { RequestAddress } from "../address.js";
import { loadKeyOf } from "../pieces/load.js";
import { GROUP, outcomeKey } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";

const answers = ["withdrawn", "held", "left"] as const;

const script = defineScript(new URL("./withdraw.lua", import.meta.url), (reply) => word(reply, answers), {
  keys: ["record", "load"],
  args: ["group"],
});

/** Takes a request with an outcome out of the queue. Safe to repeat. */
export function withdraw(redis: RedisClient, address: RequestAddress) {
  const keys = { record: outcomeKey(address), load: loadKeyOf(redis, address.bucket) };
  return script(redis, keys, { group: GROUP });
}
