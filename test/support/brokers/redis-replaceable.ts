/**
 * The two kinds of Redis in which another server can take the primary's place, in one form, for
 * tests that expect the same of both.
 */
import { startRedisCluster } from "./redis-cluster.js";
import { infoOf, promote, type RedisNode } from "./redis-node.js";
import { startWatchedRedis } from "./redis-sentinel.js";

export interface Replaceable {
  readonly url: string;
  readonly nodes: readonly RedisNode[];
  /** The node that serves the key now. */
  primaryOf(key: string): Promise<RedisNode>;
  /** Resolves when a node other than `former` serves the key. */
  whenReplaced(key: string, former: RedisNode): Promise<void>;
  /** Resolves when every primary has all its replicas again. */
  whenWhole(): Promise<void>;
  /** Asks for a failover while every server is up. */
  handOver(former: RedisNode): Promise<void>;
  dispose(): Promise<void>;
}

export const replaceables = ["a Cluster", "a primary with Sentinels"] as const;

/** @param settings of redis.conf, for every server */
export async function startReplaceable(
  kind: (typeof replaceables)[number],
  settings: Readonly<Record<string, string>> = {},
): Promise<Replaceable> {
  if (kind === "a Cluster") {
    const cluster = await startRedisCluster(settings);
    const handOver = async (former: RedisNode) => {
      const replicaOf = async ({ admin, port }: RedisNode) =>
        port !== former.port && Number(await infoOf(admin, "master_port")) === former.port;
      const are = await Promise.all(cluster.nodes.map(replicaOf));
      const replica = cluster.nodes[are.indexOf(true)];
      if (replica === undefined) throw new Error("the primary has no replica");
      await promote(replica.admin);
    };
    return { ...cluster, primaryOf: (key) => cluster.masterOf(key), handOver };
  }
  const watched = await startWatchedRedis(settings);
  return {
    ...watched,
    primaryOf: () => watched.primary(),
    whenReplaced: (_, former) => watched.whenReplaced(former),
    handOver: () => watched.handOver(),
  };
}
