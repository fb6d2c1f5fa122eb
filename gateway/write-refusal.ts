/** The typed wrapper of write-refusal.lua: whether Redis takes writes, without sending one. */
import type { RedisClient } from "#shared/redis/connect.js";
import { defineScript, isReplyError, word } from "#shared/redis/script.js";

const script = defineScript(new URL("./write-refusal.lua", import.meta.url), (reply) => word(reply, ["taken"]));

/**
 * @returns why Redis refuses writes, in its own words; undefined if it takes them.
 * @throws what a lost link throws
 */
export async function writeRefusal(redis: RedisClient): Promise<string | undefined> {
  try {
    await script(redis, [], []);
    return undefined;
  } catch (error) {
    if (error instanceof Error && isReplyError(error, "")) return error.message;
    throw error;
  }
}
