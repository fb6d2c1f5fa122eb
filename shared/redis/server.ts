/** Refuses a Redis that would lose what Baton promises to keep, and says how durable the one it found is. */
import type { Logger } from "pino";
import { retrying } from "#shared/retry.js";
import type { RedisClient } from "./connect.js";

/** A link that is cut at the very start is not a server that cannot be used. */
const ASK_BUDGET_MS = 10_000;

/** @throws Error naming the setting that is wrong. */
export async function checkServer(redis: RedisClient, log: Logger): Promise<void> {
  const info = Object.fromEntries(
    (await retrying(() => redis.info(), { budgetMs: ASK_BUDGET_MS }))
      .split("\r\n")
      .filter((line) => line.includes(":"))
      .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]),
  );
  const major = Number((info["redis_version"] ?? "0").split(".")[0]);
  if (major < 7) throw new Error(`Redis ${info["redis_version"]} is too old: Baton needs 7.0 or newer`);
  const policy = info["maxmemory_policy"];
  if (policy !== undefined && policy !== "noeviction") {
    throw new Error(`Redis has maxmemory-policy ${policy}: it would throw queued work away. Set it to noeviction`);
  }
  const mode = await durability(redis, info["aof_enabled"] === "1");
  log.info({ redis: info["redis_version"], durability: mode }, "redis checked");
  if (mode === "fast" || mode === "none")
    log.warn({ durability: mode }, "accepted work may be lost if Redis's machine loses power");
}

/** `strict`: nothing acknowledged is lost; `fast`: up to a second of it; `none`: all since the last snapshot. */
async function durability(redis: RedisClient, appendOnly: boolean): Promise<"strict" | "fast" | "none" | "unknown"> {
  if (!appendOnly) return "none";
  try {
    const [, fsync] = await redis.config("GET", "appendfsync");
    return fsync === "always" ? "strict" : "fast";
  } catch {
    return "unknown"; // managed services forbid CONFIG
  }
}
