/** The typed wrapper of write-refusal.lua: whether Redis takes writes, without sending one. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, isReplyError, word } from "../../redis/script.js";

const answers = ["taken"] as const;

const script = defineScript(new URL("./write-refusal.lua", import.meta.url), (reply) => word(reply, answers));

/**
 * @param key in a Cluster, the master that serves its slot is asked
 * @returns why Redis refuses writes, in its own words; undefined if it takes them.
 * @throws the client's error where the link is lost
 */
export async function writeRefusal(redis: RedisClient, key: string): Promise<string | undefined> {
  try {
    await script(redis, [key], []);
    return undefined;
  } catch (error) {
    if (error instanceof Error && isReplyError(error, "")) return error.message;
    throw error;
  }
}
