/**
 * The Redis that a fleet stands on, whatever it is made of: what members are told, and what a test
 * can do to it. `singleStore` is one server behind a line for each kind of member; a Cluster
 * (`cluster-store.ts`) has several.
 */
import type { RedisClient } from "#shared/redis/connect.js";
import { Proxy } from "./proxy.js";
import { startRedis, type RedisServer } from "./redis.js";

/** A connection that finds every key, wherever it lies. */
export type KeyReader = Pick<RedisClient, "lrange" | "lindex" | "hget" | "disconnect">;

export interface Store {
  /** Every server, replicas included. Each keeps its port and its data when it is killed. */
  readonly servers: readonly [RedisServer, ...RedisServer[]];
  /** How many of them are masters, which take writes. Which they are may change. */
  readonly masters: number;
  /**
   * How long a master must be away until another server has taken its place, in milliseconds; 0
   * where none does.
   */
  readonly failoverMs: number;
  /** `BATON_REDIS_URL` of the members of each kind. */
  readonly urls: Readonly<Record<"gateway" | "worker", string>>;
  /** The lines over which the members of each kind reach the servers. */
  readonly lines: Readonly<Record<"gatewayRedis" | "workerRedis", readonly [Proxy, ...Proxy[]]>>;
  /** What members are told beside the URL, such as the durability that fits. */
  readonly env: Readonly<Record<string, string>>;
  /** The servers that are masters now. Together they hold every key once. */
  mastersNow(): Promise<readonly RedisServer[]>;
  /** Resolves when every server is up, and every replica has what its master has. */
  whenWhole(): Promise<void>;
  /**
   * Opens a connection past the lines, which waits while a server is away. The caller closes it.
   */
  connectReader(): KeyReader;
  dispose(): Promise<void>;
}

/** @param direct members reach it past the lines, so that nobody can cut them */
export async function singleStore(folder: string, direct: boolean): Promise<Store> {
  const server = await startRedis(folder);
  const [gatewayRedis, workerRedis] = [await Proxy.start(server.port), await Proxy.start(server.port)];
  const urlOver = (line: Proxy) => (direct ? server.url : `redis://127.0.0.1:${line.port}`);
  return {
    servers: [server],
    masters: 1,
    failoverMs: 0,
    urls: { gateway: urlOver(gatewayRedis), worker: urlOver(workerRedis) },
    lines: { gatewayRedis: [gatewayRedis], workerRedis: [workerRedis] },
    env: {},
    mastersNow: () => Promise.resolve([server]),
    whenWhole: () => Promise.resolve(),
    connectReader: () => server.connect({ retryStrategy: () => 20, enableAutoPipelining: true }),
    async dispose() {
      await gatewayRedis.dispose();
      await workerRedis.dispose();
      await server.dispose();
    },
  };
}
