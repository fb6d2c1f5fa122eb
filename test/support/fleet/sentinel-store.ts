/**
 * A primary with two replicas and three Sentinels, as the store of a fleet in the durability mode
 * `replicated`. All members, and the servers among themselves, share a line to each server, because
 * the Sentinels name a single address for each server.
 */
import { Redis } from "ioredis";
import { Proxy } from "./proxy.js";
import { serverAt, settled } from "../brokers/redis-node.js";
import { startWatchedRedis } from "../brokers/redis-sentinel.js";
import type { Store } from "./store.js";

/** Address of the lines. All of 127.0.0.0/8 is this machine, on Linux. */
const LINES_HOST = "127.0.0.2";
/**
 * The Sentinels notice a dead primary after 1.5 s, and a replica takes its place within about three
 * seconds.
 */
const FAILOVER_MS = 5_000;

export async function sentinelStore(): Promise<Store> {
  const proxies: Proxy[] = [];
  const open = async (port: number) => {
    proxies.push(await Proxy.start(port, { host: LINES_HOST, port }));
  };
  const settings = { "min-replicas-to-write": "1", "min-replicas-max-lag": "2" };
  const watched = await startWatchedRedis(settings, { host: LINES_HOST, open });
  const servers = new Map(watched.nodes.map((node) => [node, serverAt(node)]));
  const [first, ...others] = servers.values();
  const [line, ...lines] = proxies;
  if (first === undefined || line === undefined) throw new Error("there is a primary");
  const primary = async () => {
    let found = first;
    await settled(async () => {
      const node = await watched.primary();
      found = servers.get(node) ?? first;
      return node.process.alive;
    });
    return found;
  };
  return {
    servers: [first, ...others],
    masters: 1,
    failoverMs: FAILOVER_MS,
    urls: { gateway: watched.url, worker: watched.url },
    lines: { gatewayRedis: [line, ...lines], workerRedis: [line, ...lines] },
    env: { BATON_DURABILITY: "replicated" },
    mastersNow: async () => [await primary()],
    whenWhole: () => watched.whenWhole(),
    connectReader() {
      const reader = new Redis({
        protocol: 2,
        sentinels: watched.sentinels.map(({ port }) => ({ host: "127.0.0.1", port })),
        name: watched.name,
        natMap: (address) => ({ host: "127.0.0.1", port: Number(address.split(":").at(-1)) }),
        retryStrategy: () => 50,
        maxRetriesPerRequest: null,
      });
      reader.on("error", () => undefined); // tests plan outages
      return reader;
    },
    async dispose() {
      for (const proxy of proxies) await proxy.dispose();
      await watched.dispose();
    },
  };
}
