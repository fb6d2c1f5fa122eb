/** The typed wrapper of attend.lua: gateways keep a stream running while it has a reader. */
import type { RequestAddress } from "../address.js";
import { loadKeyOf } from "../pieces/load.js";
import { outcomeKey } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";

const answers = ["attended", "background", "ended", "unknown"] as const;

const script = defineScript(new URL("./attend.lua", import.meta.url), (reply) => word(reply, answers), {
  keys: ["record", "load"],
  args: ["attended"],
});

/** Notes that a client wants the stream for `ms` from now on, by Redis's clock. */
export function attend(redis: RedisClient, address: RequestAddress, ms: number) {
  return script(redis, keysOf(redis, address), { attended: ms });
}

/** Lets the request run to its end even without a reader. */
export function detach(redis: RedisClient, address: RequestAddress) {
  return script(redis, keysOf(redis, address), { attended: "" });
}

function keysOf(redis: RedisClient, address: RequestAddress) {
  return { record: outcomeKey(address), load: loadKeyOf(redis, address.bucket) };
}
