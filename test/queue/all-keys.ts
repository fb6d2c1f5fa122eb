/** All keys of a Redis with their values, in a form that two runs of one history have in common. */
import { GROUP } from "#shared/queue/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";

/** A time in Redis ms, alone or as the first half of an entry's id. */
const TIME = /\b\d{13}(?:-\d+)?\b/g;
/** The period in the name of a hash of past sequences (past.lua). A run may see a new one begin. */
const PERIOD = /(?<=^past:.*:)\d+$/;

/**
 * @returns each key's value, and whether it has a TTL, but for the records of calls. Times are
 * replaced, and entries' ids by their order of appearance
 */
export async function keysOf(redis: RedisClient): Promise<Record<string, unknown>> {
  const entries = new Map<string, string>();
  /** Entries of two lanes may have the same id. */
  const plain = (tag: string, text: string) =>
    text.replaceAll(TIME, (found) => {
      if (!found.includes("-")) return "TIME";
      const named = `${tag} ${found}`;
      const known = entries.get(named) ?? `ENTRY ${entries.size}`;
      entries.set(named, known);
      return known;
    });
  const plainly = (tag: string, value: unknown): unknown => {
    if (Array.isArray(value)) return value.map((one) => plainly(tag, one));
    return Buffer.isBuffer(value) ? plain(tag, value.toString("latin1")) : value;
  };
  const found: Record<string, { type: string; value: unknown; expires: boolean }> = {};
  for (const key of (await redis.keys("*")).toSorted()) {
    if (key.includes("only-")) continue;
    const type = await redis.type(key);
    const value = sorted(await valueOf(redis, key, type), type);
    const [tag = ""] = /\{.*\}/.exec(key) ?? [];
    const name = plain(tag, key).replace(PERIOD, "PERIOD");
    const earlier = found[name]?.value;
    const values = plainly(tag, value);
    found[name] = { type, value: laterOf(earlier, values), expires: (await redis.pttl(key)) >= 0 };
  }
  return found;
}

/** The notes of two periods in one: of a sequence with a note in both, the later counts. */
function laterOf(earlier: unknown, later: unknown): unknown {
  if (!isPairs(earlier) || !isPairs(later)) return later;
  return [...new Map([...earlier, ...later])].toSorted(([a], [b]) => (a < b ? -1 : 1));
}

function isPairs(value: unknown): value is [string, unknown][] {
  return Array.isArray(value) && value.every((one) => Array.isArray(one) && typeof one[0] === "string");
}

async function valueOf(redis: RedisClient, key: string, type: string): Promise<unknown> {
  switch (type) {
    case "string":
      return redis.getBuffer(key);
    case "list":
      return redis.lrangeBuffer(key, 0, -1);
    case "hash":
      return redis.callBuffer("HGETALL", key);
    case "zset":
      return redis.callBuffer("ZRANGE", key, "0", "-1", "WITHSCORES");
    case "stream":
      return streamOf(redis, key);
    default:
      throw new Error(`a key of type ${type}`);
  }
}

/**
 * The entries of a stream; of a ready stream also those that workers own, each with its worker.
 * Other streams have ids of their own, which may be equal to an entry's id by chance.
 */
async function streamOf(redis: RedisClient, key: string): Promise<unknown> {
  const entries = (await redis.callBuffer("XRANGE", key, "-", "+")) as unknown[][];
  if (!key.startsWith("ready:")) return entries.map(([, fields]) => fields);
  const owned = (await redis.callBuffer("XPENDING", key, GROUP, "-", "+", "1000")) as unknown[][];
  return [entries, owned.map((row) => row.slice(0, 2))];
}

/** Hashes and sorted sets in the order of their members: scores of one run may be equal. */
function sorted(value: unknown, type: string): unknown {
  if (!Array.isArray(value) || (type !== "hash" && type !== "zset")) return value;
  const pairs = [];
  for (let i = 0; i < value.length; i += 2) pairs.push([String(value[i]), value[i + 1] as unknown] as const);
  // The number of a model's live sequences is a sample, whose age decides when it is taken again.
  return pairs.filter(([member]) => !member.startsWith("s:")).toSorted(([a], [b]) => (a < b ? -1 : 1));
}
