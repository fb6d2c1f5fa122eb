/**
 * A Redis Cluster of three masters with a replica each, as the store of a fleet. The fleet runs in
 * the durability mode `replicated`.
 *
 * A Cluster gives its clients a single address for each node, so all members share a line to each
 * node: a test that cuts the gateways' lines cuts the workers', too. The lines listen at another
 * loopback address than the nodes, under the same ports, and the nodes announce that address to
 * clients as their host name. So the nodes themselves bypass the lines.
 */
import { Cluster } from "ioredis";
import { Proxy } from "./proxy.js";
import { startRedisCluster } from "../brokers/redis-cluster.js";
import { serverAt } from "../brokers/redis-node.js";
import type { Store } from "./store.js";

/** Address of the lines. All of 127.0.0.0/8 is this machine, on Linux. */
const LINES_HOST = "127.0.0.2";
/**
 * A replica begins to take its master's place 1.5 s after the master's last answer, and needs about
 * two more seconds.
 */
const FAILOVER_MS = 4_000;

export async function clusterStore(): Promise<Store> {
  const cluster = await startRedisCluster({
    "cluster-announce-hostname": LINES_HOST,
    "cluster-preferred-endpoint-type": "hostname",
    // Masters that live serve their slots while a replica takes another master's place.
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
          // No pipelines: the client follows a redirection only if all commands of a pipeline get
          // the same redirection, and never for commands of several slots. Together the tries wait
          // for longer than a failover takes.
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
