/** The typed wrapper of keep.lua: puts an answer into the cache. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { cacheKeys } from "../keys.js";
import type { CachePlace } from "./look-up.js";

const script = defineScript(
  new URL("./keep.lua", import.meta.url),
  (reply) => word(reply, ["kept", "known", "no-room"]),
  { keys: ["answer", "used", "bytes"], args: ["digest", "answer", "mostBytes", "ttl"] },
);

export interface CacheLimits {
  /** Of all answers: of a bucket in a Cluster, else of the deployment. */
  readonly mostBytes: number;
  /** How long an answer stays, in ms. */
  readonly ttlMs: number;
}

export function keepAnswer(
  redis: RedisClient,
  { digest, bucket }: CachePlace,
  answer: Buffer,
  { mostBytes, ttlMs }: CacheLimits,
): Promise<"kept" | "known" | "no-room"> {
  const { used, bytes, answerOf } = cacheKeys(redis.isCluster ? bucket : undefined);
  return script(redis, { answer: answerOf(digest), used, bytes }, { digest, answer, mostBytes, ttl: ttlMs });
}
