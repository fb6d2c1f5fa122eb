/** The memory and the replicas of the servers of Redis, as each says. */
import type ioredis from "ioredis";
import { mastersOf, type RedisClient } from "./connect.js";
import { addressOf, fieldsOf } from "./server.js";

export interface ServerMemory {
  /** The address of the server, with its port. */
  readonly node: string;
  readonly used: number;
  /** Of `maxmemory`; 0: the server has no limit. */
  readonly limit: number;
  readonly replicas: number;
}

/** Most servers to ask. */
const MOST_SERVERS = 64;

/** @returns the masters that answer */
export async function readMemory(redis: RedisClient): Promise<ServerMemory[]> {
  const all = await Promise.all(mastersOf(redis).slice(0, MOST_SERVERS).map(ask));
  return all.filter((one) => one !== undefined);
}

async function ask(server: ioredis.Redis): Promise<ServerMemory | undefined> {
  try {
    const fields = fieldsOf(await server.info("memory", "replication"));
    const numberOf = (name: string) => Number(fields[name] ?? 0) || 0;
    return {
      node: addressOf(server),
      used: numberOf("used_memory"),
      limit: numberOf("maxmemory"),
      replicas: numberOf("connected_slaves"),
    };
  } catch {
    return undefined; // away, which `baton_redis_up` and the buckets say
  }
}
