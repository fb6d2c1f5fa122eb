/**
 * A Redis Cluster of three masters with a replica each, as what a fleet stands on: the fleet runs
 * in the durability mode `replicated`.
 *
 * A Cluster tells its clients one address for each node, so all members share a line to each: what
 * cuts the gateways' lines cuts the workers', too. The lines listen at another loopback address
 * than the nodes, under the same ports, and clients are told that address as the nodes' host name.
 * So the nodes themselves talk past the lines.
 */
import { Cluster } from "ioredis";
import { Proxy } from "./proxy.js";
import { startRedisCluster } from "./redis-cluster.js";
import { serverAt } from "./redis-node.js";
import type { Store } from "./store.js";

/** Where the lines listen. All of 127.0.0.0/8 is this machine, on Linux. */
const LINES_HOST = "127.0.0.2";
/**
 * A replica begins to take its master's place 1.5 s after the last answer, and does so within about
 * two seconds more.
 */
const FAILOVER_MS = 4_000;

export async function clusterStore(): Promise<Store> {
  const cluster = await startRedisCluster({
    "cluster-announce-hostname": LINES_HOST,
    "cluster-preferred-endpoint-type": "hostname",
    // The slots of the masters that live are served while another one is replaced.
    "cluster-require-full-coverage": "no",
    "min-replicas-to-write": "1",
    "min-replicas-max-lag": "2",
  });
  const proxies: Proxy[] = [];
  const dispose = async () => {
    for (const proxy of proxies) await proxy.dispose();
    await cluster.dispose();
  };
  try {
    for (const { port } of cluster.nodes) proxies.push(await Proxy.start(port, { host: LINES_HOST, port }));
  } catch (error) {
    await dispose();
    throw error;
  }
  const servers = new Map(cluster.nodes.map((node) => [node, serverAt(node)]));
  const [first, ...others] = servers.values();
  const [line, ...lines] = proxies;
  if (first === undefined || line === undefined) throw new Error("a Cluster has nodes");
  const url = `redis+cluster://${cluster.nodes.map(({ port }) => `${LINES_HOST}:${port}`).join(",")}`;
  return {
    servers: [first, ...others],
    masters: cluster.masters,
    failoverMs: FAILOVER_MS,
    urls: { gateway: url, worker: url },
    lines: { gatewayRedis: [line, ...lines], workerRedis: [line, ...lines] },
    env: { BATON_DURABILITY: "replicated" },
    async mastersNow() {
      return (await cluster.mastersNow()).flatMap((node) => servers.get(node) ?? []);
    },
    whenWhole: () => cluster.whenWhole(),
    connectReader() {
      const reader = new Cluster(
        cluster.nodes.map(({ port }) => ({ host: "127.0.0.1", port })),
        {
          redisOptions: { protocol: 2 },
          natMap: (address) => ({ host: "127.0.0.1", port: Number(address.split(":").at(-1)) }),
          // No pipelines: a redirection is followed only where all commands of one are redirected
          // alike, and those of several slots never are. Together the tries wait for longer than a
          // failover takes.
          maxRedirections: 200,
          retryDelayOnFailover: 50,
          retryDelayOnClusterDown: 50,
        },
      );
      reader.on("error", () => undefined); // tests plan outages
      return reader;
    },
    dispose,
  };
}
