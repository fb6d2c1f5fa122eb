/**
 * The typed wrapper of write-refusal.lua: whether Redis takes requests, without sending a request.
 */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, isReplyError, word } from "../../redis/script.js";
import { CALL_LIMITS } from "./admit.js";

const answers = ["taken", "full"] as const;

/** Begins like Redis's own refusal, because the cause is the same. */
const NEARLY_FULL = "OOM less is left below 'maxmemory' than a call of admission may take";

const script = defineScript(new URL("./write-refusal.lua", import.meta.url), (reply) => word(reply, answers), {
  keys: ["key"],
  args: ["room"],
});

/**
 * @param key in a Cluster, the master that serves its slot answers
 * @returns why Redis refuses a full call of small requests, in its own words if it refuses all
 * writes; undefined if it takes them
 * @throws the client's error if the link is lost
 */
export async function writeRefusal(redis: RedisClient, key: string): Promise<string | undefined> {
  try {
    const said = await script(redis, { key }, { room: CALL_LIMITS.bytes });
    return said === "full" ? NEARLY_FULL : undefined;
  } catch (error) {
    if (error instanceof Error && isReplyError(error, "")) return error.message;
    throw error;
  }
}
