/**
 * The Redis of a fleet, of any kind: the settings of members, and the faults that a test can cause.
 * `singleStore` is a single server behind a line for each kind of member. A Cluster
 * (`cluster-store.ts`) has several servers.
 */
import type { RedisClient } from "#shared/redis/connect.js";
import { freePort } from "../brokers/port.js";
import { clientSettings, type TestCertificates } from "../certificates.js";
import { Proxy } from "./proxy.js";
import { startRedis, type RedisServer } from "../brokers/redis.js";

/** A connection that finds every key on any server. */
export type KeyReader = Pick<RedisClient, "lrange" | "lindex" | "hget" | "disconnect">;

export interface Store {
  /** Every server, replicas included. A killed server keeps its port and its data. */
  readonly servers: readonly [RedisServer, ...RedisServer[]];
  /**
   * How many of the servers are masters, which take writes. A failover changes which servers these
   * are.
   */
  readonly masters: number;
  /**
   * How long a master must be down until another server has taken its place, in milliseconds; 0 if
   * no server ever does.
   */
  readonly failoverMs: number;
  /** `BATON_REDIS_URL` of each kind of member. */
  readonly urls: Readonly<Record<"gateway" | "worker", string>>;
  /** The lines over which each kind of member reaches the servers. */
  readonly lines: Readonly<Record<"gatewayRedis" | "workerRedis", readonly [Proxy, ...Proxy[]]>>;
  /** Settings of members beside the URL, such as the durability that fits. */
  readonly env: Readonly<Record<string, string>>;
  /** The servers that are masters now. Together they hold every key once. */
  mastersNow(): Promise<readonly RedisServer[]>;
  /** Resolves when every server is up, and every replica has all of its master's data. */
  whenWhole(): Promise<void>;
  /**
   * Opens a connection past the lines, which waits while a server is down. The caller closes the
   * connection.
   */
  connectReader(): KeyReader;
  dispose(): Promise<void>;
}

/**
 * @param direct whether members bypass the lines, so that no test can cut them
 * @param certificates with which members connect, if they are to use TLS; they bypass the lines
 */
export async function singleStore(folder: string, direct: boolean, certificates?: TestCertificates): Promise<Store> {
  const tlsPort = certificates === undefined ? 0 : await freePort();
  const server = await startRedis(folder, certificates === undefined ? [] : tlsArguments(tlsPort, certificates));
  const [gatewayRedis, workerRedis] = [await Proxy.start(server.port), await Proxy.start(server.port)];
  const urlOver = (line: Proxy) => (direct ? server.url : `redis://127.0.0.1:${line.port}`);
  const tlsUrl = `rediss://127.0.0.1:${tlsPort}`;
  return {
    servers: [server],
    masters: 1,
    failoverMs: 0,
    urls:
      certificates === undefined
        ? { gateway: urlOver(gatewayRedis), worker: urlOver(workerRedis) }
        : { gateway: tlsUrl, worker: tlsUrl },
    lines: { gatewayRedis: [gatewayRedis], workerRedis: [workerRedis] },
    env: certificates === undefined ? {} : clientSettings("REDIS", certificates),
    mastersNow: () => Promise.resolve([server]),
    whenWhole: () => Promise.resolve(),
    connectReader: () => server.connect({ retryStrategy: () => 20 }),
    async dispose() {
      await gatewayRedis.dispose();
      await workerRedis.dispose();
      await server.dispose();
    },
  };
}

/** Arguments with which a server takes clients with certificates on a second port. */
function tlsArguments(port: number, { ca, server }: TestCertificates): string[] {
  const files = ["--tls-ca-cert-file", ca, "--tls-cert-file", server.cert, "--tls-key-file", server.key];
  return ["--tls-port", String(port), ...files, "--tls-auth-clients", "yes"];
}
