/**
 * The typed wrapper of write-version.lua: writes checkpoints into a full Redis, which takes scripts
 * but no other writes and no transaction.
 */
import type { RedisClient } from "../../../redis/connect.js";
import { defineScript, word } from "../../../redis/script.js";
import type { Version } from "../../pieces/version.js";

const script = defineScript(new URL("./write-version.lua", import.meta.url), (reply) => word(reply, ["OK"]), {
  keys: ["version"],
  args: ["checkpoint", "ttl"],
  durable: true,
});

/** @param versions in a Redis Cluster, of the same bucket; nothing refers to them yet */
export async function writeVersions(redis: RedisClient, versions: readonly Version[]): Promise<void> {
  const calls = versions.map(({ key, checkpoint, ttlMs }) =>
    script(redis, { version: key }, { checkpoint, ttl: ttlMs }),
  );
  await Promise.all(calls);
}
